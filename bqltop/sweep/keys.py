"""Any key stops a sweep; so does Ctrl-C."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import termios
import threading
import tty
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def stop_key() -> Iterator[Callable[[], str | None]]:
    """A function that answers why to stop, None as long as there is no reason. The terminal hands over single keys
    until the block ends; without one only Ctrl-C counts."""
    interrupted: list[str] = []
    before = None
    if threading.current_thread() is threading.main_thread():
        before = signal.signal(signal.SIGINT, lambda *_: interrupted.append("interrupted"))
    try:
        with _single_keys() as fd:
            yield lambda: interrupted[0] if interrupted else _pressed(fd)
    finally:
        if before is not None:
            signal.signal(signal.SIGINT, before)


def _pressed(fd: int | None) -> str | None:
    if fd is not None and select.select([fd], [], [], 0)[0] and os.read(fd, 64):
        return "a key was pressed"
    return None


@contextlib.contextmanager
def _single_keys() -> Iterator[int | None]:
    try:
        fd = sys.stdin.fileno()
        before = termios.tcgetattr(fd)
    except (OSError, ValueError, termios.error):
        yield None
        return
    try:
        tty.setcbreak(fd)
        yield fd
    finally:
        termios.tcsetattr(fd, termios.TCSADRAIN, before)
