"""Several devices in one run: one thread, one pace, their samples one after the other."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

from bqltop.model import Sample
from bqltop.pace import Pace
from bqltop.sampler import Sampler


class Many:
    """A source of the samples of several devices: at each instant one of each, in the order given. They are told apart
    by ``sample.stream``."""

    def __init__(self, samplers: Sequence[Sampler]):
        self.samplers = tuple(samplers)
        self.pace = Pace()
        for stream, sampler in enumerate(self.samplers):
            sampler.pace, sampler.stream = self.pace, stream

    @property
    def interval(self) -> float:
        return self.pace.interval

    @interval.setter
    def interval(self, seconds: float) -> None:
        self.pace.interval = seconds

    @property
    def description(self) -> str:
        return ", ".join(sampler.description for sampler in self.samplers)

    def __enter__(self) -> Many:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
        with contextlib.ExitStack() as stack:
            for sampler in self.samplers:
                stack.callback(sampler.release)

    def close(self) -> None:
        """End ``every``."""
        self.pace.stop()

    def every(self, interval_s: float | None = None) -> Iterator[Sample]:
        """All devices now, and then again each ``interval_s`` seconds."""
        self.interval = interval_s or self.interval
        for late_ns in self.pace.instants(self._tick):
            for sampler in self.samplers:
                yield sampler.sample(late_ns)

    def _tick(self) -> None:
        for sampler in self.samplers:
            sampler.tick()
