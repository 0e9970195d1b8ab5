"""Tuning from the real screen on a pty: apply, leave in every way, and what the next start says."""

from __future__ import annotations

import os
import signal
import time

import pytest
from looking import wait_until
from on_a_pty import DRAWN
from test_leaves_nothing import BROKEN_DRAWING, Session

from bqltop.kernel import netns as namespaces
from bqltop.tuning.journal import Journal
from bqltop.tuning.tuner import Tuner

pytestmark = pytest.mark.usefixtures("require_root")


class Keyboard(Session):
    """A session that is typed into; ``wait_for`` looks at what came since the last time."""

    seen = 0

    def wait_for(self, text: bytes) -> None:
        deadline = time.monotonic() + 20
        while (place := self.output.find(text, self.seen)) < 0:
            assert time.monotonic() < deadline, f"{text!r} did not come; last: {self.output[-2000:]!r}"
            self.read(0.1)
        self.seen = place + len(text)


@pytest.fixture
def screen(ifb, tmp_path, monkeypatch):
    """``screen(*words, patch="")``: the screen on an ifb of its own, with the panel open on limit_min."""
    monkeypatch.setenv("BQLTOP_STATE_DIR", str(tmp_path))
    sessions = []
    end = ifb()

    def start(*words, patch=""):
        session = Keyboard(end.device, "--netns", end.netns, "--no-bpf", *words, patch=patch)
        sessions.append(session)
        session.wait_for(DRAWN)
        session.type(b"t")
        session.wait_for(b"limit_max")
        return session

    start.end, start.journal = end, Journal(str(tmp_path))
    yield start
    for session in sessions:
        session.end()


def value(end, knob):
    with Tuner(end.device, namespaces.resolve(end.netns), Journal("/nonexistent")) as tuner:
        return tuner.setting(knob).value


def set_limit_min(screen, session):
    session.type(b"2000")
    session.wait_for(b"limit_min")
    session.type(b"\r")

    def kept():
        session.read(0.1)
        return screen.journal.entries() and screen.journal.entries()[-1].state == "done"

    assert wait_until(kept)
    session.wait_for(b"in force")


def test_typed_applied_and_kept(screen):
    session = screen()
    set_limit_min(screen, session)
    assert value(screen.end, "limit_min") == 2000
    session.type(b"q")
    session.wait_for(b"changes in force")
    session.type(b"k")
    assert session.status() == 0
    assert value(screen.end, "limit_min") == 2000
    assert screen.journal.left_behind() == []


BROKEN_WHEN_TOLD = f"""
import signal
def break_drawing(*arguments):
    exec({BROKEN_DRAWING!r})
signal.signal(signal.SIGUSR1, break_drawing)
"""
"""Drawing is broken from SIGUSR1 on."""


@pytest.mark.parametrize(("words", "left", "after"), [((), 1, 2000), (("--keep",), 0, 2000), (("--revert-on-exit",), 0, 0)])
@pytest.mark.parametrize("ending", ["SIGTERM", "closed terminal", "crash"])
def test_endings_nobody_is_asked_at(screen, words, left, after, ending):
    patch = BROKEN_WHEN_TOLD if ending == "crash" else ""
    session = screen(*words, patch=patch)
    set_limit_min(screen, session)
    if ending == "SIGTERM":
        os.kill(session.pid, signal.SIGTERM)
    elif ending == "closed terminal":
        session.hang_up()
    else:
        os.kill(session.pid, signal.SIGUSR1)
    assert session.status() != 0
    assert value(screen.end, "limit_min") == after
    assert len(screen.journal.left_behind()) == left


def test_after_kill_9_the_next_start_says_what_was_left_and_restores_it(screen):
    session = screen()
    set_limit_min(screen, session)
    os.kill(session.pid, signal.SIGKILL)
    assert session.status() == -signal.SIGKILL
    assert value(screen.end, "limit_min") == 2000
    again = screen()
    again.wait_for(b"left by an earlier run")
    again.type(b"R")
    again.wait_for(b"back to 0")
    assert value(screen.end, "limit_min") == 0
    again.type(b"q")
    assert again.status() == 0
    assert screen.journal.left_behind() == []


def test_read_only_changes_nothing(screen):
    session = screen("--read-only")
    session.type(b"2000\r")
    session.wait_for(b"--read-only")
    session.type(b"q")
    assert session.status() == 0
    assert value(screen.end, "limit_min") == 0
