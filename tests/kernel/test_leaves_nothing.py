"""However `bqltop DEV` and `bqltop demo` end: no eBPF program, no namespace, no process, and the terminal as it was."""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import signal
import struct
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from leftovers import PREFIX, marked_processes, namespaces
from looking import ROOT, wait_until
from on_a_pty import CURSOR_SHOWN, DRAWN, LEFT_ALTERNATE, OnAPty

from bqltop.lab.scope import PREFIX_VARIABLE
from bqltop.lab.xdp import bpf

pytestmark = pytest.mark.usefixtures("require_root")

BPF_PROG_GET_FD_BY_ID = 13  # enum bpf_cmd
BROKEN_DRAWING = """
from bqltop.tui.draw import panels
def broken(*arguments, **words):
    raise ZeroDivisionError("a bug in drawing")
panels.qdiscs = broken
"""
_serial = itertools.count(1)


def program_exists(number: int) -> bool:
    """Whether the kernel still has an eBPF program with this id (ids are not used again soon)."""
    try:
        os.close(bpf(BPF_PROG_GET_FD_BY_ID, struct.pack("=III", number, 0, 0)))
    except OSError as error:
        if error.errno == errno.ENOENT:
            return False
        raise
    return True


def programs_of(pid: int) -> set[int]:
    """Ids of the eBPF programs that a process holds."""
    found = set()
    for path in Path(f"/proc/{pid}/fdinfo").iterdir():
        with contextlib.suppress(FileNotFoundError):  # closed while we looked
            found |= {int(line.split()[1]) for line in path.read_text().splitlines() if line.startswith("prog_id:")}
    return found


class Session(OnAPty):
    """bqltop on a terminal, with a mark that all it starts inherits."""

    def __init__(self, *words: str, patch: str = "") -> None:
        self.mark = f"{PREFIX}k{next(_serial)}"
        start = f"import os, sys\nos.chdir({str(ROOT)!r})"
        code = f"{start}\n{patch}\nfrom bqltop.cli import main\nsys.exit(main(sys.argv[1:]))"
        super().__init__([sys.executable, "-c", code, *words], {PREFIX_VARIABLE: self.mark}, rows=40, columns=120)


@pytest.fixture
def start() -> Iterator:
    """`start("demo", patch="...")`: a Session."""
    sessions = []

    def make(*words: str, patch: str = "") -> Session:
        sessions.append(Session(*words, patch=patch))
        return sessions[-1]

    yield make
    for session in sessions:
        session.end()


def leave(session: Session, way: str) -> None:
    """End it the named way."""
    match way:
        case "q":
            os.write(session.terminal, b"q")
        case "Ctrl-C":
            os.write(session.terminal, b"\x03")
        case "SIGTERM" | "SIGHUP" | "SIGKILL":
            os.kill(session.pid, getattr(signal, way))
        case "closed terminal":
            session.hang_up()


STATUS = {
    "q": {0},
    "Ctrl-C": {0, 130},
    "SIGTERM": {128 + signal.SIGTERM},
    "SIGHUP": {128 + signal.SIGHUP},
    "closed terminal": {1, 128 + signal.SIGHUP},
    "SIGKILL": {-signal.SIGKILL},
}


def assert_nothing_left(session: Session, programs: set[int]) -> None:
    assert wait_until(lambda: not any(map(program_exists, programs))), "eBPF programs are left"
    assert wait_until(lambda: not marked_processes(session.mark)), marked_processes(session.mark)
    assert wait_until(lambda: not namespaces(session.mark)), namespaces(session.mark)


def assert_terminal_restored(session: Session) -> None:
    assert LEFT_ALTERNATE in session.output
    assert CURSOR_SHOWN in session.output
    assert session.output.rindex(LEFT_ALTERNATE) > session.output.rindex(DRAWN)
    assert termios.tcgetattr(session.terminal) == session.before


@pytest.fixture(params=["DEV", "demo"])
def begin(request, start, veth_pair):
    """`begin(patch="")`: a Session that watches a quiet veth, or the demo."""
    if request.param == "demo":
        return lambda patch="": start("demo", "--rules", "3000", patch=patch)
    pair = veth_pair()
    return lambda patch="": start("veth0", "--netns", pair.sender.netns, patch=patch)


@pytest.mark.parametrize("way", STATUS)
def test_nothing_is_left_after(begin, way):
    session = begin()
    session.wait_for(DRAWN)
    assert wait_until(lambda: len(programs_of(session.pid)) >= 3)
    programs = programs_of(session.pid)
    assert all(map(program_exists, programs))
    leave(session, way)
    assert session.status() in STATUS[way]
    assert_nothing_left(session, programs)
    if way not in ("SIGKILL", "closed terminal"):
        assert_terminal_restored(session)
    assert b"Traceback" not in session.output


def test_nothing_is_left_after_a_crash_in_the_drawing_code(begin):
    session = begin(patch=BROKEN_DRAWING)
    assert session.status() == 1
    assert_nothing_left(session, set())
    assert LEFT_ALTERNATE in session.output
    assert termios.tcgetattr(session.terminal) == session.before
    told = session.output[session.output.rindex(LEFT_ALTERNATE) :]
    assert b"bqltop: ZeroDivisionError: a bug in drawing" in told
    assert b"Traceback" not in told


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL], ids=lambda number: number.name)
@pytest.mark.parametrize("moment", ["namespaces", "flood"])
def test_nothing_is_left_of_a_demo_that_is_ended_while_it_is_built(start, number, moment):
    session = start("demo", "--json", "--rules", "3000")

    def reached() -> bool:
        if moment == "namespaces":
            return bool(namespaces(session.mark))
        return any("flood" in command for command in marked_processes(session.mark).values())

    assert wait_until(reached, 20)
    os.kill(session.pid, number)
    session.status()
    assert_nothing_left(session, set())
    assert b"Traceback" not in session.output


@pytest.mark.parametrize("way", ["SIGTERM", "SIGKILL"])
def test_nothing_is_left_of_a_headless_run(start, veth_pair, way):
    pair = veth_pair()
    session = start("veth0", "--netns", pair.sender.netns, "--json", "--interval", "0.1")
    deadline = time.monotonic() + 20
    while b'"schema":1' not in session.output:
        assert time.monotonic() < deadline
        session.read(0.1)
    programs = programs_of(session.pid)
    assert len(programs) >= 3
    leave(session, way)
    session.status()
    assert_nothing_left(session, programs)
    assert b"Traceback" not in session.output
