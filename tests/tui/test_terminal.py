"""However it ends, the terminal is as it was, the source is closed, and the exit status tells. On a real pty."""

from __future__ import annotations

import os
import pty
import signal
import sys
import termios
import time
from pathlib import Path

import pytest
from on_a_pty import CURSOR_SHOWN, DRAWN, LEFT_ALTERNATE, OnAPty

PLAYED = Path(__file__).parent / "played.py"


class Session(OnAPty):
    """The application on a made-up source; it writes "closed" to ``mark`` when the source is."""

    def __init__(self, mark: Path, *arguments: str, **environment: str) -> None:
        self.mark = mark
        command = [sys.executable, str(PLAYED), str(mark), *arguments]
        super().__init__(command, {"PYTHONPATH": str(PLAYED.parents[2]), **environment}, rows=24, columns=80)

    def restored(self) -> bool:
        self.read(0.1)
        modes = termios.tcgetattr(self.terminal)
        return LEFT_ALTERNATE in self.output and CURSOR_SHOWN in self.output and modes == self.before


@pytest.fixture
def start(tmp_path):
    sessions = []

    def _start(*arguments: str, **environment: str) -> Session:
        session = Session(tmp_path / "mark", *arguments, **environment)
        sessions.append(session)
        return session

    yield _start
    for session in sessions:
        session.end()


@pytest.mark.parametrize("keys", [b"q", b"\x03"], ids=["q", "ctrl-c"])
def test_a_key_leaves_with_status_0(start, keys):
    session = start()
    session.wait_for(DRAWN)
    session.type(keys)
    assert session.status() == 0
    assert session.restored()
    assert session.mark.read_text() == "closed"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_leaves_with_128_and_its_number(start, number):
    session = start()
    session.wait_for(DRAWN)
    os.kill(session.pid, number)
    assert session.status() == 128 + number
    assert session.restored()
    assert session.mark.read_text() == "closed"


def test_sigint_from_outside_leaves(start):
    session = start()
    session.wait_for(DRAWN)
    os.kill(session.pid, signal.SIGINT)
    assert session.status() in (0, 130)
    assert session.restored()
    assert session.mark.read_text() == "closed"


def test_a_closed_terminal_ends_it_and_closes_the_source(start):
    session = start()
    session.wait_for(DRAWN)
    session.hang_up()
    assert session.status() in (1, 128 + signal.SIGHUP)
    assert session.mark.read_text() == "closed"


def test_a_closed_terminal_ends_it_also_when_sighup_is_ignored(start):
    """As under nohup: only EIO tells that nobody is there any more."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        session = start()
    finally:
        signal.signal(signal.SIGHUP, before)
    session.wait_for(DRAWN)
    session.hang_up()
    assert session.status() in (1, 128 + signal.SIGHUP)
    assert session.mark.read_text() == "closed"


def test_an_exception_in_drawing_is_one_line_and_status_1(start):
    session = start("--raise-in-drawing")
    assert session.status() == 1
    assert session.restored()
    after = session.output.split(LEFT_ALTERNATE)[-1]
    assert b"bqltop: ZeroDivisionError: a bug in drawing" in after
    assert b"Traceback" not in session.output
    assert session.mark.read_text() == "closed"


def test_bqltop_debug_shows_the_traceback(start):
    session = start("--raise-in-drawing", BQLTOP_DEBUG="1")
    assert session.status() == 1
    assert b"Traceback" in session.output.split(LEFT_ALTERNATE)[-1]


def test_a_failing_source_is_one_line_and_status_1(start):
    session = start("--fail-in-source")
    assert session.status() == 1
    assert session.restored()
    assert b"bqltop: [Errno 5] Input/output error" in session.output.split(LEFT_ALTERNATE)[-1]
    assert session.mark.read_text() == "closed"


def test_ctrl_z_suspends_and_continuing_draws_again(start):
    session = start()
    session.wait_for(DRAWN)
    session.type(b"\x1a")
    session.wait_for(LEFT_ALTERNATE)
    end = time.monotonic() + 10
    while Path(f"/proc/{session.pid}/stat").read_text().rpartition(")")[2].split()[0] != "T":
        assert time.monotonic() < end
        time.sleep(0.05)
    session.output = b""
    os.kill(session.pid, signal.SIGCONT)
    session.wait_for(b"\x1b[?1049h")
    for text in (DRAWN, b"last minute", b"help", b"veth0"):
        session.wait_for(text)
    session.type(b"q")
    assert session.status() == 0
    assert session.restored()


@pytest.mark.parametrize("environment", [
    {"TERM": "dumb"}, {"TERM": "screen"}, {"TERM": "linux"}, {"NO_COLOR": "1"}, {"LC_ALL": "C"},
    {"LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONIOENCODING": "latin-1"},
], ids=str)
def test_any_terminal_and_locale_shows_it(start, environment):
    session = start(**environment)
    session.wait_for(DRAWN)
    session.wait_for(b"DSF")
    session.type(b"q")
    assert session.status() == 0
    assert session.mark.read_text() == "closed"


def test_no_color_sends_no_colours(start):
    session = start(NO_COLOR="1", COLORTERM="truecolor")
    session.wait_for(DRAWN)
    session.type(b"q")
    session.status()
    for code in session.output.split(b"\x1b[38;2;")[1:]:
        red, green, blue = code.split(b"m")[0].split(b";")[:3]
        assert red == green == blue, "a grey at most"


def test_standard_error_in_a_file_leaves_the_screen_on_the_terminal(start, tmp_path):
    script = tmp_path / "redirected.sh"
    log = tmp_path / "log"
    script.write_text(f'exec "{sys.executable}" "$@" 2>"{log}"\n')
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ.update({"TERM": "xterm-256color", "PYTHONPATH": str(PLAYED.parents[2])})
        os.execv("/bin/sh", ["/bin/sh", str(script), str(PLAYED), str(tmp_path / "mark")])
    session = Session.__new__(Session)
    session.mark, session.output, session.pid, session.terminal = tmp_path / "mark", b"", pid, terminal
    try:
        session.wait_for(b"\x1b[?1049h")
        session.wait_for(DRAWN)
        session.type(b"q")
        assert session.status() == 0
        assert log.read_bytes() == b""
    finally:
        session.end()
