"""Do something once, however the process ends: normally, by an exception, by SIGTERM or a closed terminal."""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator

SIGNALS = (signal.SIGTERM, signal.SIGHUP)


@contextlib.contextmanager
def on_exit(action: Callable[[], object]) -> Iterator[None]:
    """Run ``action`` exactly once, at the latest when the process ends. Signals are caught only in the main thread;
    afterwards they do what they would have done."""
    once = _Once(action)
    atexit.register(once)
    before = {}
    if threading.current_thread() is threading.main_thread():
        before = {number: signal.signal(number, _handler(once)) for number in SIGNALS}
    try:
        yield
    finally:
        once()
        atexit.unregister(once)
        for number, handler in before.items():
            signal.signal(number, handler)


class _Once:
    def __init__(self, action: Callable[[], object]):
        self._action: Callable[[], object] | None = action

    def __call__(self) -> None:
        action, self._action = self._action, None
        if action:
            action()


def _handler(once: _Once):
    def handle(number, _frame) -> None:
        try:
            once()
        finally:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)

    return handle
