"""Several devices in one run: one thread, one pace, their samples one after the other."""

from __future__ import annotations

import contextlib
import itertools
from collections import deque
from collections.abc import Callable, Iterator, Sequence

from bqltop.model import Sample
from bqltop.pace import Paced
from bqltop.sampler import Sampler


class Many(Paced):
    """A source of the samples of several devices: at each instant one of each, in the order they were added. They are
    told apart by ``sample.stream``, a number that is never used twice. Devices may be added and dropped on the way."""

    def __init__(self, samplers: Sequence[Sampler] = ()):
        super().__init__()
        self._numbers = itertools.count()
        self._samplers: dict[int, Sampler] = {}
        self._orders: deque[Callable[[], object]] = deque()
        for sampler in samplers:
            self.add(sampler)

    @property
    def description(self) -> str:
        return ", ".join(sampler.description for sampler in self.samplers)

    @property
    def samplers(self) -> tuple[Sampler, ...]:
        return tuple(self._samplers.values())

    def sampler(self, stream: int) -> Sampler | None:
        """The one whose samples carry this number; None when it was dropped."""
        return self._samplers.get(stream)

    def add(self, sampler: Sampler) -> int:
        """Watch one more device; its stream. While ``every`` runs, in its thread only: see ``order``."""
        stream = next(self._numbers)
        sampler.pace, sampler.stream = self.pace, stream
        self._samplers[stream] = sampler
        return stream

    def drop(self, stream: int) -> None:
        """Let go of a device. While ``every`` runs, in its thread only."""
        sampler = self._samplers.pop(stream, None)
        if sampler is not None:
            sampler.release()

    def order(self, what: Callable[[], object]) -> None:
        """Have something done in the thread of ``every``, and samples taken right after it. From any thread; returns
        at once."""
        self._orders.append(what)
        self.pace.hurry()

    def release(self) -> None:
        with contextlib.ExitStack() as stack:
            for sampler in self.samplers:
                stack.callback(sampler.release)

    def every(self, interval_s: float | None = None) -> Iterator[Sample]:
        """All devices now, and then again each ``interval_s`` seconds."""
        self.interval = interval_s or self.interval
        for late_ns in self.pace.instants(self._tick):
            while self._orders:
                self._orders.popleft()()
            for sampler in self.samplers:
                sample = sampler.attempt(late_ns)
                if sample is not None:
                    yield sample

    def _tick(self) -> None:
        for sampler in self.samplers:
            sampler.tick()
