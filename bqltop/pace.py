"""Keeping time: the instants at which samples are taken."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

TICK_S = 0.1
"""Longest time between two looks at the wrapping counters: 100 Gbit/s of bytes wrap 32 bits in 0.34 s."""


class Pace:
    """Instants ``interval`` seconds apart; ``interval``, ``hurry`` and ``stop`` may be used from any thread. An instant
    that cannot be kept is left out and counted in ``missed``, never made up for in a hurry."""

    def __init__(self, interval: float = TICK_S):
        self.interval = interval
        self.missed = 0
        self._stopping = False
        self._woken = threading.Event()

    def stop(self) -> None:
        """End ``instants`` as soon as may be."""
        self._stopping = True
        self._woken.set()

    def hurry(self) -> None:
        """The next instant is now, and the pace begins anew with it."""
        self._woken.set()

    def instants(self, tick: Callable[[], None]) -> Iterator[int]:
        """How late each instant is, in nanoseconds. The first one is now, and the pace begins when its work is done.
        In a long wait ``tick`` is called at least every TICK_S."""
        if self._stopping:
            return
        yield 0
        planned = time.monotonic() + self.interval
        while not self._stopping:
            if self._wait(planned, tick):
                self._woken.clear()
                if self._stopping:
                    return
                yield 0
                planned = time.monotonic() + self.interval
                continue
            yield max(0, round((time.monotonic() - planned) * 1e9))
            planned += self.interval
            behind = time.monotonic() - planned
            if behind > self.interval:
                skipped = int(behind / self.interval)
                self.missed += skipped
                planned += skipped * self.interval

    def _wait(self, planned: float, tick: Callable[[], None]) -> bool:
        """Sleep until ``planned``; True when woken before (or at once, when woken meanwhile)."""
        while (left := planned - time.monotonic()) > 0:
            if self._woken.wait(min(left, TICK_S)):
                return True
            if left > TICK_S:
                tick()
        return self._woken.is_set()
