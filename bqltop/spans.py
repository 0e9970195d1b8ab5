"""A recording cut into spans at each change of the set-up, and what can be said of each span. Pure."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import isnan

from bqltop import histogram
from bqltop.charted import Charted, combined
from bqltop.clock import passed_ns
from bqltop.model import Event, Sample
from bqltop.window import QdiscWindow, Window, between, comparable

CUTTING = frozenset(("setting", "mtu", "txqueuelen", "qdisc", "xdp", "queues", "up", "down", "returned", "peer", "reset"))
"""Kinds of events that change the set-up: figures from before and after must not be mixed."""
SHORTEST_S = 2.0
"""Changes closer together than this are taken for one (a setting turned on every queue, a value typed digit by digit)."""

SETTLE_S = 1.0
"""Left out after a change: what was under way before it would be counted for what it is not."""

DISTRIBUTIONS = (
    "inflight_histogram",
    "completion_size_histogram",
    "completion_interval_histogram",
    "qdisc_sojourn_histogram",
    "ring_sojourn_histogram",
)


@dataclass(slots=True)
class Mean:
    """A mean while it grows."""

    total: float = 0.0
    count: int = 0

    def add(self, value: float) -> None:
        self.total += value
        self.count += 1

    @property
    def value(self) -> float:
        return self.total / self.count


@dataclass(slots=True)
class Span:
    """Samples between two changes. ``cause`` are the events that began it, ``seconds`` how much of it the figures cover
    (without SETTLE_S at its beginning, without times that cannot be compared). ``figures`` holds every sample's value of the
    charted figures, all queues combined; ``cells`` the distributions of the span, all queues added up;
    ``ring`` counts samples by ring occupancy, ``rings`` has its mean by queue; ``window`` is of its longest
    stretch of comparable samples, and the backlogs in it are means."""

    cause: tuple[Event, ...] = ()
    samples: int = 0
    lasted_ns: int = 0
    first: Sample | None = None
    last: Sample | None = None
    seconds: float = 0.0
    figures: dict[str, array] = field(default_factory=dict)
    cells: dict[str, list[int]] = field(default_factory=dict)
    ring: dict[int, int] = field(default_factory=dict)
    window: Window | None = None
    _base: Sample | None = None
    _rings: dict[int, Mean] = field(default_factory=dict)
    _backlogs: dict[tuple, tuple[Mean, Mean]] = field(default_factory=dict)
    _changed_ns: int = 0

    def change(self, causes: tuple[Event, ...], before: Sample, sample: Sample) -> None:
        """Begin anew with ``sample``: so soon after the change before there is no span of its own, and what was seen since
        was of a set-up that is gone."""
        self.cause += causes
        self._changed_ns = self.lasted_ns + passed(before, sample)
        self.seconds, self.window, self._base = 0.0, None, None
        for gathered in (self.figures, self.cells, self.ring, self._rings, self._backlogs):
            gathered.clear()

    def add(self, before: Sample | None, sample: Sample, columns: dict[str, Sequence[float]]) -> None:
        """Take a sample with its charted columns; ``before`` is the sample before it."""
        if self.first:
            self.lasted_ns += passed(before, sample)
        self.first, self.last = self.first or sample, sample
        self.samples += 1
        if self.cause and self.lasted_ns - self._changed_ns < SETTLE_S * 1e9:
            return
        if not comparable(before, sample):
            self._close(before)
            self._base = sample
            return
        self._base = self._base or before
        self.seconds += (sample.monotonic_ns - before.monotonic_ns) / 1e9
        self._gather(sample, columns)

    def _gather(self, sample: Sample, columns: dict[str, Sequence[float]]) -> None:
        for id, row in columns.items():
            value = combined(id, row)
            if not isnan(value):
                self.figures.setdefault(id, array("d")).append(value)
        for queue in sample.queues:
            if queue.ring_used is not None:
                self.ring[queue.ring_used] = self.ring.get(queue.ring_used, 0) + 1
                self._rings.setdefault(queue.index, Mean()).add(queue.ring_used)
        for qdisc in sample.qdiscs:
            packets, size = self._backlogs.setdefault((qdisc.handle, qdisc.parent), (Mean(), Mean()))
            packets.add(qdisc.backlog_packets)
            size.add(qdisc.backlog_bytes)

    @property
    def rings(self) -> dict[int, float]:
        """Mean occupancy of each queue's ring in packets, where it is known."""
        return {index: mean.value for index, mean in self._rings.items()}

    def _close(self, last: Sample | None) -> None:
        """End a stretch of comparable samples: what the distributions grew by goes to the span's."""
        base, self._base = self._base, None
        if base is None or last is None or not comparable(base, last):
            return
        older = {queue.index: queue for queue in base.queues}
        for queue in last.queues:
            for name in DISTRIBUTIONS:
                then = older.get(queue.index)
                grown = histogram.difference(getattr(queue, name), then and getattr(then, name))
                if grown and any(grown):
                    total = self.cells.setdefault(name, [0] * len(grown))
                    self.cells[name] = [a + b for a, b in zip(total, grown, strict=True)]
        window = between(base, last)
        if window and (self.window is None or window.seconds > self.window.seconds):
            self.window = window

    def finish(self) -> Span:
        """To be called once after the last sample."""
        self._close(self.last)
        if self.window:
            self.window = replace(self.window, qdiscs=tuple(map(self._with_mean, self.window.qdiscs)))
        return self

    def _with_mean(self, qdisc: QdiscWindow) -> QdiscWindow:
        means = self._backlogs.get((qdisc.handle, qdisc.parent))
        if means is None:
            return qdisc
        packets, size = means
        return replace(qdisc, backlog_packets=round(packets.value), backlog_bytes=round(size.value))

    def values(self, id: str) -> list[float]:
        """A figure's values in ascending order; empty where it was not to be had."""
        return sorted(self.figures.get(id, ()))

    def mean(self, id: str) -> float | None:
        values = self.figures.get(id)
        return sum(values) / len(values) if values else None

    def percentile(self, name: str, share: float) -> float | None:
        """A percentile of a distribution, in its own unit."""
        return histogram.percentile(self.cells.get(name), share)


def passed(before: Sample, sample: Sample) -> int:
    """Nanoseconds between two samples, also across another boot of the host."""
    return passed_ns((before.time_ns, before.monotonic_ns), (sample.time_ns, sample.monotonic_ns))


def rank(values: Sequence[float], share: float) -> float | None:
    """The value at a share (0..1) of sorted ``values``; None where there are none."""
    return values[min(len(values) - 1, int(share * len(values)))] if values else None


def cut(samples: Iterable[Sample]) -> Iterator[Span]:
    """The spans of one device's samples. A change too soon after the one before belongs to the same cut."""
    charted = Charted()
    span, before = Span(), None
    for sample in samples:
        causes = tuple(event for event in sample.events if event.kind in CUTTING)
        if causes and before is not None and span.lasted_ns + passed(before, sample) >= SHORTEST_S * 1e9:
            yield span.finish()
            span = Span(cause=causes)
        elif causes and before is not None:
            span.change(causes, before, sample)
        else:
            span.cause += causes
        span.add(before, sample, charted.columns(sample))
        before = sample
    if span.samples:
        yield span.finish()
