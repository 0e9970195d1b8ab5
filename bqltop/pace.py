"""Keeping time: the instants at which samples are taken."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from typing import Self

TICK_S = 0.1
"""Longest time between two looks at the wrapping counters: 100 Gbit/s of bytes wrap 32 bits in 0.34 s."""

NEAREST, HURRIED_S = 1 / 3, 0.03
"""How near two instants may be: a share of the interval, and in a hurry at most so long. A rate over less (the last
instant late, the next one in time) would be the rate of one burst."""


class Pace:
    """Instants ``interval`` seconds apart; ``interval``, ``hurry`` and ``stop`` may be used from any thread. An instant
    that is late by less than an interval is made up for, at a little distance from the one before; one that is later is left
    out and counted in ``missed``."""

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
        taken = time.monotonic()
        yield 0
        planned = time.monotonic() + self.interval
        while not self._stopping:
            nearest = taken + self.interval * NEAREST
            if self._wait(max(planned, nearest), tick):
                self._woken.clear()
                if self._stopping:
                    return
                time.sleep(max(0.0, min(nearest, taken + HURRIED_S) - time.monotonic()))
                taken = time.monotonic()
                yield 0
                planned = time.monotonic() + self.interval
                continue
            taken = time.monotonic()
            yield max(0, round((taken - planned) * 1e9))
            planned += self.interval
            passed = max(0, math.floor((time.monotonic() - planned) / self.interval))
            self.missed += passed
            planned += passed * self.interval

    def _wait(self, planned: float, tick: Callable[[], None]) -> bool:
        """Sleep until ``planned``; True when woken before (or at once, when woken meanwhile)."""
        while (left := planned - time.monotonic()) > 0:
            if self._woken.wait(min(left, TICK_S)):
                return True
            if left > TICK_S:
                tick()
        return self._woken.is_set()


class Paced:
    """What every live source has: a pace that may be changed and stopped from any thread, and an end that releases all
    it holds."""

    def __init__(self) -> None:
        self.pace = Pace()

    @property
    def interval(self) -> float:
        """Seconds between two samples of ``every``."""
        return self.pace.interval

    @interval.setter
    def interval(self, seconds: float) -> None:
        self.pace.interval = seconds

    def close(self) -> None:
        """End ``every``. What is open is released by leaving the ``with``, or by ``release``."""
        self.pace.stop()

    def release(self) -> None:
        """Let go of everything that is open. In the thread of ``every``, or after it has ended."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
        self.release()
