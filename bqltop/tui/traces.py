"""The figures of the last minute that the chart draws, per queue, in bounded memory (one double per figure, queue and sample).

A sample is about a hundred times larger than what a chart needs of it, so samples themselves are not kept.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isnan, nan

from bqltop import format as fmt
from bqltop.model import QueueSample, Sample
from bqltop.window import comparable

Formatter = Callable[[float | None], str]


@dataclass(frozen=True, slots=True)
class Series:
    """One line of the chart. ``per_queue`` ones follow the selected queue; without one, ``combine`` tells how the
    queues become one figure. ``top`` fixes the upper edge, ``top_from`` names the figure that does (the ring's size),
    ``over`` the one drawn over it in the same lane (limit over inflight)."""

    id: str
    title: str
    combine: Callable[[Sequence[float]], float] = sum
    per_queue: bool = True
    top: float | None = None
    top_from: str | None = None
    over: str | None = None
    format: Formatter = fmt.count
    least_top: float = 1.0


SERIES: tuple[Series, ...] = (
    Series("stopped", "stopped", max, top=1.0, format=fmt.share),
    Series("inflight", "inflight", max, over="limit"),
    Series("ring", "ring", max, top_from="ring_size"),
    Series("requeues", "requeues/s", sum, False, format=fmt.rate, least_top=10.0),
    Series("backlog", "qdisc backlog", sum, False, least_top=10.0),
    Series("packets", "packets/s", sum, False, format=fmt.rate, least_top=10.0),
    Series("work", "packets per NAPI poll", max, False, top=64.0, format=fmt.count),
)
BY_ID = {series.id: series for series in SERIES}


class Traces:
    """Collects the series' values; ``values`` gives one back as (moment in seconds, value or None)."""

    def __init__(self, seconds: float = 60.0, capacity: int = 1300) -> None:
        self.seconds = seconds
        self.revision = 0
        """Counts samples taken; tells a chart how many of them it has yet to see."""
        self.known: set[str] = set()
        """Series that have had a value."""
        self._points: deque[tuple[float, dict[str, array]]] = deque(maxlen=capacity)
        self._before: Sample | None = None

    @property
    def now(self) -> float:
        """The moment of the newest point."""
        return self._points[-1][0] if self._points else 0.0

    def add(self, sample: Sample) -> None:
        """Take what the chart needs from ``sample`` and the one before."""
        before, self._before = self._before, sample
        if not sample.present:
            return
        older = before if comparable(before, sample) else None
        now = sample.monotonic_ns / 1e9
        figures = _figures(older, sample)
        self._points.append((now, figures))
        for id in figures.keys() - self.known:
            if not all(map(isnan, figures[id])):
                self.known.add(id)
        self.revision += 1
        while self._points and self._points[0][0] < now - self.seconds:
            self._points.popleft()

    def values(self, id: str, queue: int | None = None, last: int | None = None) -> list[tuple[float, float | None]]:
        """The points of one series, oldest first; ``last`` limits them to the newest ones."""
        combine = BY_ID[id].combine if id in BY_ID else max
        points = self._points if last is None else [self._points[i] for i in range(-min(last, len(self._points)), 0)]
        return [(at, _one(figures.get(id), queue, combine)) for at, figures in points]

    def latest(self, id: str, queue: int | None = None) -> float | None:
        newest = self.values(id, queue, last=1)
        return newest[0][1] if newest else None


def _one(values: array | None, queue: int | None, combine: Callable[[Sequence[float]], float]) -> float | None:
    if not values:
        return None
    if len(values) == 1:
        value = values[0]
    elif queue is not None:
        value = values[queue] if queue < len(values) else nan
    else:
        known = [value for value in values if not isnan(value)]
        value = combine(known) if known else nan
    return None if isnan(value) else value


def _figures(older: Sample | None, newer: Sample) -> dict[str, array]:
    """Every series' values at ``newer``: per queue, or a single one for the whole device."""
    queues = newer.queues
    figures = {
        "inflight": _levels(queues, "inflight"),
        "limit": _levels(queues, "limit"),
        "ring": _levels(queues, "ring_used"),
        "ring_size": _levels(queues, "ring_size"),
    }
    root = [qdisc for qdisc in newer.qdiscs if qdisc.parent == "root"]
    if root:
        figures["backlog"] = array("d", [sum(qdisc.backlog_packets for qdisc in root)])
    if older is None:
        return figures
    seconds = (newer.monotonic_ns - older.monotonic_ns) / 1e9
    figures["stopped"] = _growth(older.queues, queues, "stopped_ns", seconds * 1e9, most=1.0)
    figures["packets"] = _sum_growth(_totals(older, newer), seconds)
    figures["requeues"] = _sum_growth(_requeues(older, newer), seconds)
    polls = sum(n.polls for n in newer.napis) - sum(n.polls for n in older.napis)
    work = sum(n.work for n in newer.napis) - sum(n.work for n in older.napis)
    if polls > 0:
        figures["work"] = array("d", [max(0.0, work / polls)])
    return figures


def _levels(queues: Sequence[QueueSample], name: str) -> array:
    return array("d", [nan if (value := getattr(queue, name)) is None else value for queue in queues])


def _growth(older: Sequence[QueueSample], newer: Sequence[QueueSample], name: str, per: float,
            most: float = float("inf")) -> array:
    """Growth of a counter per queue, divided by ``per``. Queues are matched by index; a new one has none."""
    if len(older) != len(newer):
        older = ()
    values = array("d", [nan]) * len(newer)
    for place, (then, now) in enumerate(zip(older, newer, strict=False)):
        before, after = getattr(then, name), getattr(now, name)
        if before is not None and after is not None and after >= before:
            values[place] = min(most, (after - before) / per)
    return values


def _totals(older: Sample, newer: Sample) -> tuple[float | None, float | None]:
    """Packets sent: what eBPF counted, else the device's own counter."""
    then, now = (_sum([q.packets for q in sample.queues]) for sample in (older, newer))
    if then is None or now is None:
        return (older.link.tx_packets, newer.link.tx_packets) if older.link and newer.link else (None, None)
    return then, now


def _requeues(older: Sample, newer: Sample) -> tuple[float | None, float | None]:
    """Requeues of the root qdisc (mq sums its children there); driver-busy returns where no qdisc counts."""
    pair = tuple(_sum([q.requeues for q in sample.qdiscs if q.parent == "root"]) for sample in (older, newer))
    if None in pair:
        pair = tuple(_sum([q.busy for q in sample.queues]) for sample in (older, newer))
    return pair


def _sum(values: list[int | None]) -> int | None:
    return sum(values) if values and None not in values else None


def _sum_growth(pair: tuple[float | None, float | None], seconds: float) -> array:
    then, now = pair
    return array("d", [nan if then is None or now is None or now < then else (now - then) / seconds])
