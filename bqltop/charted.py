"""The figures that charts draw, worked out sample by sample at a small part of a window's cost.

The names are those of bqltop.fields and mean the same as in bqltop.window, with one difference: percentiles of
distributions are over the last second, and keep their value until the next second is over.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import nan
from operator import attrgetter

from bqltop import histogram
from bqltop.model import NapiSample, QueueSample, Sample
from bqltop.window import comparable

GAUGES = ("limit", "limit_min", "limit_max", "inflight", "ring_used", "ring_size")
RATES = {
    "packets_per_s": "packets",
    "busy_per_s": "busy",
    "completed_per_s": "completed",
    "stops_driver_per_s": "stops_driver",
    "stops_bql_per_s": "stops_bql",
}
SHARES = {
    "stopped_share": "stopped_ns",
    "stopped_driver_share": "stopped_driver_ns",
    "stopped_bql_share": "stopped_bql_ns",
}
PERCENTILES = {
    "inflight_p99": ("inflight_histogram", 0.99, 1.0),
    "qdisc_sojourn_p50_s": ("qdisc_sojourn_histogram", 0.50, 1e-9),
    "qdisc_sojourn_p99_s": ("qdisc_sojourn_histogram", 0.99, 1e-9),
    "ring_sojourn_p50_s": ("ring_sojourn_histogram", 0.50, 1e-9),
    "ring_sojourn_p99_s": ("ring_sojourn_histogram", 0.99, 1e-9),
}
PERCENTILES_EVERY_NS = 1_000_000_000

PER_QUEUE = (*GAUGES, *RATES, "drained_per_s", "dark_buffer_s", *SHARES, *PERCENTILES)
DEVICE = ("backlog_packets", "backlog_bytes", "drops_per_s", "requeues_per_s", "polls_per_s", "work_average")
CHARTED = (*PER_QUEUE, *DEVICE)

SUMMED = frozenset((*RATES, "drained_per_s"))
"""Figures that add up over the queues; of all others the highest stands for the device."""

_COUNTERS = (*RATES.values(), *SHARES.values())
_read_queue = attrgetter("index", *GAUGES, *_COUNTERS)
_FIRST_COUNTER = 1 + len(GAUGES)
_RING, _PACKETS = 1 + GAUGES.index("ring_used"), _FIRST_COUNTER + _COUNTERS.index("packets")

Row = Sequence[float]
"""A value per queue, nan where it is not to be had."""


class Charted:
    """Turns each sample into the columns of CHARTED. Remembers the sample before, and the one a second ago."""

    def __init__(self) -> None:
        self._before: Sample | None = None
        self._values: dict[int, tuple] = {}
        self._base: Sample | None = None
        self._percentiles: dict[str, Row] = {}

    def columns(self, sample: Sample) -> dict[str, Row]:
        """The figures of ``sample``; those that need an earlier one are left out while there is none to compare with.
        Per-queue figures have a value per queue, the others one."""
        before, self._before = self._before, sample
        older = before if comparable(before, sample) else None
        if not sample.present:
            self._values, self._base, self._percentiles = {}, None, {}
            return {}
        rows = [_read_queue(queue) for queue in sample.queues]
        figures: dict[str, Row] = {}
        for place, name in enumerate(GAUGES, 1):
            figures[name] = [nan if row[place] is None else row[place] for row in rows]
        if older is not None:
            seconds = (sample.monotonic_ns - older.monotonic_ns) / 1e9
            figures.update(_rates([self._values.get(row[0]) for row in rows], rows, seconds))
            figures.update(_device(older, sample, seconds))
        else:
            self._base, self._percentiles = None, {}
        self._values = {row[0]: row for row in rows}
        figures.update(self._of_distributions(sample))
        return figures

    def _of_distributions(self, sample: Sample) -> dict[str, Row]:
        base = self._base
        if base is None or len(base.queues) != len(sample.queues):
            self._base, self._percentiles = sample, {}
        elif sample.monotonic_ns - base.monotonic_ns >= PERCENTILES_EVERY_NS * 0.95:
            self._percentiles = {
                name: [_percentile(then, now, *how) for then, now in zip(base.queues, sample.queues, strict=True)]
                for name, how in PERCENTILES.items()
            }
            self._base = sample
        return self._percentiles


def _percentile(then: QueueSample, now: QueueSample, name: str, share: float, scale: float) -> float:
    newer, older = getattr(now, name), getattr(then, name)
    if newer is None or newer == older:
        return nan
    value = histogram.percentile(histogram.difference(newer, older), share)
    return nan if value is None else value * scale


def _rates(older: Sequence[tuple | None], newer: Sequence[tuple], seconds: float) -> dict[str, Row]:
    """Rates and shares per queue from the rows of two samples."""
    figures: dict[str, Row] = {}
    for place, name in enumerate(RATES, _FIRST_COUNTER):
        figures[name] = [_growth(then, now, place, seconds) for then, now in zip(older, newer, strict=True)]
    for place, name in enumerate(SHARES, _FIRST_COUNTER + len(RATES)):
        grown = [_growth(then, now, place, seconds * 1e9) for then, now in zip(older, newer, strict=True)]
        figures[name] = [min(1.0, value) if value == value else nan for value in grown]
    drained = [_drained(then, now, seconds) for then, now in zip(older, newer, strict=True)]
    figures["drained_per_s"] = drained
    figures["dark_buffer_s"] = [_dark_buffer(now[_RING], rate) for now, rate in zip(newer, drained, strict=True)]
    completed = figures["completed_per_s"]
    figures["completed_per_s"] = [a if a == a else b for a, b in zip(completed, drained, strict=True)]
    return figures


def _growth(then: tuple | None, now: tuple, place: int, per: float) -> float:
    if then is None:
        return nan
    before, after = then[place], now[place]
    return nan if before is None or after is None or after < before else (after - before) / per


def _drained(then: tuple | None, now: tuple, seconds: float) -> float:
    """Packets per second that left the ring: those that went in less what the ring grew by."""
    packets = _growth(then, now, _PACKETS, 1)
    if packets != packets or now[_RING] is None or then[_RING] is None:
        return nan
    return max(0.0, (packets - (now[_RING] - then[_RING])) / seconds)


def _dark_buffer(used: int | None, drained: float) -> float:
    if used is None:
        return nan
    if not used:
        return 0.0
    return used / drained if drained > 0 else nan


def _device(older: Sample, newer: Sample, seconds: float) -> dict[str, Row]:
    """Figures of the device as a whole: the root qdisc (requeues: the driver's busy returns where no qdisc counts) and
    all its NAPI instances."""
    figures: dict[str, Row] = {}
    then, now = ([qdisc for qdisc in sample.qdiscs if qdisc.parent == "root"] for sample in (older, newer))
    same = [(q.kind, q.handle) for q in then] == [(q.kind, q.handle) for q in now]
    if now:
        figures["backlog_packets"] = [float(sum(qdisc.backlog_packets for qdisc in now))]
        figures["backlog_bytes"] = [float(sum(qdisc.backlog_bytes for qdisc in now))]
    if now and same:
        for name in ("drops", "requeues"):
            figures[f"{name}_per_s"] = [max(0, _sum(now, name) - _sum(then, name)) / seconds]
    elif not now:
        busy = [[queue.busy for queue in sample.queues] for sample in (older, newer)]
        if None not in busy[0] + busy[1]:
            figures["requeues_per_s"] = [max(0, sum(busy[1]) - sum(busy[0])) / seconds]
    polls, work = (_napi_growth(older.napis, newer.napis, name) for name in ("polls", "work"))
    if newer.napis:
        figures["polls_per_s"] = [polls / seconds]
    if polls > 0:
        figures["work_average"] = [work / polls]
    return figures


def _sum(records: Iterable, name: str) -> int:
    return sum(getattr(record, name) for record in records)


def _napi_growth(older: Sequence[NapiSample], newer: Sequence[NapiSample], name: str) -> int:
    return max(0, _sum(newer, name) - _sum(older, name)) if len(older) == len(newer) else 0


def combined(name: str, row: Row) -> float:
    """One value for all queues of a column; nan where no queue has one."""
    known = [value for value in row if value == value]
    if not known:
        return nan
    return sum(known) if name in SUMMED else max(known)
