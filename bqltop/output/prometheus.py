"""Samples as Prometheus metrics: which there are (``METRICS``, pure data) and a collector that hands them out.

Conventions: seconds, bytes and packets in the names, ``_total`` for counters, distributions as classic histograms,
everything with the labels ``device`` and ``netns`` ("" is the namespace bqltop runs in). Counters begin at 0 when
bqltop attaches, which Prometheus takes for a counter reset. The device's own packet counters are left to node_exporter.

Cardinality is bounded: at most MAX_QUEUES queues, and above MAX_HISTOGRAM_QUEUES the distributions of all queues are
added up under ``queue="all"``.

prometheus_client is an optional extra: it is imported when a collector is made, not before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from bqltop import fields, histogram
from bqltop.model import NapiSample, QueueSample, Sample, Unit
from bqltop.window import Window, napi_names

MISSING = "prometheus_client is not installed; to get it: pip install 'bqltop[prometheus]'"

MAX_QUEUES = 256
MAX_HISTOGRAM_QUEUES = 16

PACKET_BOUNDS = tuple((1 << n) - 1 for n in range(13))
"""Upper bounds, included, of the inflight buckets in packets: 0, 1, 3, 7, ... 4095."""
BYTE_BOUNDS = tuple((1 << n) - 1 for n in range(10, 25))
"""... in bytes: 1023, 2047, ... 16777215."""
SOJOURN_BOUNDS = tuple((1 << n) - 1 for n in range(12, 33, 2))
"""... of sojourn times in nanoseconds, 4 us to 4.3 s in steps of four. Told to Prometheus in seconds."""
WORK_BOUNDS = (0, 1, 3, 7, 15, 31, 47, 63)
"""... of NAPI work in packets; a poll of 64 and more is past the last."""

COMMON = ("device", "netns")
QUEUE = (*COMMON, "queue")
NAPI = (*COMMON, "napi", "napi_device", "role")
QDISC = (*COMMON, "kind", "parent")

NS = 1e-9
Labelled = tuple[tuple[str, ...], object]


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric family. ``read`` yields (labels beyond COMMON, value) pairs from a sample and its window; the value
    of a histogram is (cells, bounds, bounds_of, divisor, exact sum or None). ``name`` is without ``_total``."""

    name: str
    kind: str
    help: str
    labels: tuple[str, ...]
    read: Callable[[Sample, Window | None], Iterable[Labelled]]

    @property
    def exposed(self) -> str:
        return f"{self.name}_total" if self.kind == "counter" else self.name


def _queues(sample: Sample) -> Sequence[QueueSample]:
    return sample.queues[:MAX_QUEUES]


def _queue(field: str, sample: Sample, _window, *, unit: Unit | None = None, scale: float = 1) -> Iterator[Labelled]:
    for queue in _queues(sample):
        value = getattr(queue, field)
        if value is not None and unit in (None, queue.unit):
            yield (str(queue.index),), value * scale


def _by_cause(causes: dict[str, str], sample: Sample, _window, *, scale: float = 1) -> Iterator[Labelled]:
    for queue in _queues(sample):
        for cause, field in causes.items():
            value = getattr(queue, field)
            if value is not None:
                yield (str(queue.index), cause), value * scale


def _queue_window(field: str, _sample, window: Window | None) -> Iterator[Labelled]:
    for queue in window.queues[:MAX_QUEUES] if window else ():
        value = getattr(queue, field)
        if value is not None:
            yield (str(queue.index),), value


def _added_up(histograms: list[tuple[int, ...]]) -> tuple[int, ...]:
    return tuple(map(sum, zip(*histograms, strict=True)))


def _queue_histogram(field: str, bounds: Sequence[int], sample: Sample, _window, *, unit: Unit | None = None,
                     divisor: float = 1) -> Iterator[Labelled]:
    found = [
        (queue, cells) for queue in sample.queues
        if (cells := getattr(queue, field)) is not None and unit in (None, queue.unit)
    ]
    if len(found) > MAX_HISTOGRAM_QUEUES:
        total = _added_up([cells for _, cells in found])
        yield ("all",), (total, bounds, histogram.log_linear_bounds, divisor, None)
        return
    for queue, cells in found:
        yield (str(queue.index),), (cells, bounds, histogram.log_linear_bounds, divisor, None)


def _labelled_napis(sample: Sample, most: int) -> Iterator[tuple[tuple[str, ...], NapiSample]]:
    for (role, name), napi in zip(napi_names(sample.napis), sample.napis[:most], strict=False):
        yield (name, napi.device, role), napi


def _napi(field: str, sample: Sample, _window) -> Iterator[Labelled]:
    for labels, napi in _labelled_napis(sample, MAX_QUEUES):
        yield labels, getattr(napi, field)


def _napi_histogram(sample: Sample, _window) -> Iterator[Labelled]:
    for labels, napi in _labelled_napis(sample, MAX_HISTOGRAM_QUEUES):
        cells = (napi.work_histogram, WORK_BOUNDS, lambda cell: (cell, cell), 1, napi.work)
        yield labels, cells


def _qdisc(field: str, sample: Sample, _window) -> Iterator[Labelled]:
    for qdisc in sample.qdiscs[:MAX_QUEUES]:
        yield (qdisc.kind, qdisc.parent), getattr(qdisc, field)


def _own(field: str, sample: Sample, _window, *, scale: float = 1) -> Iterator[Labelled]:
    value = getattr(sample.own, field, None)
    if value is not None:
        yield (), value * scale


def _echoes(field: str, sample: Sample, _window) -> Iterator[Labelled]:
    if sample.probe is not None:
        yield (sample.probe.address,), getattr(sample.probe, field)


def _echo_times(prefix: str, sample: Sample, _window) -> Iterator[Labelled]:
    """Shares of the last minute's echoes as gauges: their window slides, so they are no histogram."""
    for quantile in ("0.5", "0.99"):
        value = getattr(sample.probe, f"{prefix}_p{quantile[2:]:0<2}_ns", None)
        if value is not None:
            yield (sample.probe.address, quantile), value * NS


def _info(sample: Sample, _window) -> Iterator[Labelled]:
    device = sample.device
    peer = device.peer.name if device.peer else None
    yield tuple(value or "" for value in (device.driver, device.kind, device.qdisc, peer)), 1


def _probes(sample: Sample, _window) -> Iterator[Labelled]:
    for probe in sample.probes:
        yield (probe.name,), probe.in_force


def said(scope: str, field: str) -> str:
    """What a figure means, from the one table that says so, as Prometheus writes it: without the full stop."""
    return fields.get(scope, field, "sample").meaning.removesuffix(".")


def _two_units(name: str, kind: str, field: str) -> Iterator[Metric]:
    """A figure in BQL's unit becomes two metrics: a name tells its unit, and must not mean two things."""
    for unit in Unit:
        yield Metric(f"bqltop_queue_{name}_{unit}", kind, said("queue", field), QUEUE, partial(_queue, field, unit=unit))


def _inflight_histograms() -> Iterator[Metric]:
    for unit, bounds in ((Unit.PACKETS, PACKET_BOUNDS), (Unit.BYTES, BYTE_BOUNDS)):
        read = partial(_queue_histogram, "inflight_histogram", bounds, unit=unit)
        yield Metric(f"bqltop_queue_transmit_inflight_{unit}", "histogram",
                     "Inflight seen at each transmit; the sum is from the middles of the cells", QUEUE, read)


CAUSE = (*QUEUE, "by")
ECHO = (*COMMON, "address")
_STOPS = {"driver": "stops_driver", "bql": "stops_bql"}
_STOPPED = {"driver": "stopped_driver_ns", "bql": "stopped_bql_ns"}
_XOFF = {"driver": "drv_xoff", "bql": "stack_xoff", "frozen": "frozen"}

METRICS: tuple[Metric, ...] = (
    Metric("bqltop_device_info", "gauge", "What the device is", (*COMMON, "driver", "kind", "qdisc", "peer"), _info),
    Metric("bqltop_device_present", "gauge", "1 while the device is there", COMMON, lambda s, w: [((), s.present)]),
    Metric("bqltop_probe_in_force", "gauge", "1 where the source of figures is in force", (*COMMON, "probe"), _probes),
    Metric("bqltop_queue_xoff", "gauge", "1 while the queue is stopped by this one", CAUSE, partial(_by_cause, _XOFF)),
    Metric("bqltop_queue_stops", "counter", "Stops that began", CAUSE, partial(_by_cause, _STOPS)),
    Metric("bqltop_queue_stopped_by_seconds", "counter", "Time stopped by the driver and by BQL, which overlap", CAUSE,
           partial(_by_cause, _STOPPED, scale=NS)),
    Metric("bqltop_queue_stopped_seconds", "counter", said("queue", "stopped_ns"), QUEUE,
           partial(_queue, "stopped_ns", scale=NS)),
    Metric("bqltop_queue_packets", "counter", said("queue", "packets"), QUEUE, partial(_queue, "packets")),
    Metric("bqltop_queue_busy", "counter", said("queue", "busy"), QUEUE, partial(_queue, "busy")),
    Metric("bqltop_queue_tx_timeouts", "counter", said("queue", "tx_timeouts"), QUEUE, partial(_queue, "tx_timeouts")),
    Metric("bqltop_queue_ring_used_packets", "gauge", said("queue", "ring_used"), QUEUE,
           partial(_queue, "ring_used")),
    Metric("bqltop_queue_ring_size_packets", "gauge", said("queue", "ring_size"), QUEUE,
           partial(_queue, "ring_size")),
    Metric("bqltop_queue_dark_buffer_seconds", "gauge", "Ring occupancy / rate at which it drains, last window", QUEUE,
           partial(_queue_window, "dark_buffer_s")),
    *_two_units("bql_limit", "gauge", "limit"),
    *_two_units("bql_limit_min", "gauge", "limit_min"),
    *_two_units("bql_limit_max", "gauge", "limit_max"),
    *_two_units("bql_inflight", "gauge", "inflight"),
    *_two_units("bql_completed", "counter", "completed"),
    *_inflight_histograms(),
    Metric("bqltop_queue_qdisc_sojourn_seconds", "histogram", "Time sampled packets waited in the qdisc", QUEUE,
           partial(_queue_histogram, "qdisc_sojourn_histogram", SOJOURN_BOUNDS, divisor=1e9)),
    Metric("bqltop_queue_ring_sojourn_seconds", "histogram", "Time sampled packets waited in the ring", QUEUE,
           partial(_queue_histogram, "ring_sojourn_histogram", SOJOURN_BOUNDS, divisor=1e9)),
    Metric("bqltop_qdisc_packets", "counter", said("qdisc", "packets"), QDISC, partial(_qdisc, "packets")),
    Metric("bqltop_qdisc_bytes", "counter", said("qdisc", "bytes"), QDISC, partial(_qdisc, "bytes")),
    Metric("bqltop_qdisc_drops", "counter", said("qdisc", "drops"), QDISC, partial(_qdisc, "drops")),
    Metric("bqltop_qdisc_requeues", "counter", said("qdisc", "requeues"), QDISC, partial(_qdisc, "requeues")),
    Metric("bqltop_qdisc_overlimits", "counter", said("qdisc", "overlimits"), QDISC, partial(_qdisc, "overlimits")),
    Metric("bqltop_qdisc_backlog_bytes", "gauge", said("qdisc", "backlog_bytes"), QDISC, partial(_qdisc, "backlog_bytes")),
    Metric("bqltop_qdisc_backlog_packets", "gauge", said("qdisc", "backlog_packets"), QDISC, partial(_qdisc, "backlog_packets")),
    Metric("bqltop_napi_polls", "counter", said("napi", "polls"), NAPI, partial(_napi, "polls")),
    Metric("bqltop_napi_full_polls", "counter", said("napi", "full_polls"), NAPI, partial(_napi, "full_polls")),
    Metric("bqltop_napi_work_packets", "histogram", "Packets handled per poll", NAPI, _napi_histogram),
    Metric("bqltop_echo_sent", "counter", said("probe", "sent"), ECHO, partial(_echoes, "sent")),
    Metric("bqltop_echo_lost", "counter", said("probe", "lost"), ECHO, partial(_echoes, "lost")),
    Metric("bqltop_echo_round_trip_seconds", "gauge", "Round trips of the last minute's echoes", (*ECHO, "quantile"),
           partial(_echo_times, "rtt")),
    Metric("bqltop_own_cpu_seconds", "counter", said("own", "cpu_s"), COMMON, partial(_own, "cpu_s")),
    Metric("bqltop_own_resident_memory_bytes", "gauge", said("own", "rss_bytes"), COMMON, partial(_own, "rss_bytes")),
    Metric("bqltop_own_missed_samples", "counter", said("own", "missed"), COMMON, partial(_own, "missed")),
    Metric("bqltop_own_bpf_seconds", "counter", said("own", "bpf_ns"), COMMON,
           partial(_own, "bpf_ns", scale=NS)),
)


def buckets(cells: Sequence[int], bounds: Sequence[int], bounds_of: Callable[[int], tuple[int, int]], divisor: float,
            exact_sum: float | None) -> tuple[list[tuple[str, int]], float]:
    """Prometheus' cumulative buckets [(le, count), ..., ("+Inf", all)] and the sum of the values, both divided by
    ``divisor``. ``bounds`` must be upper bounds of cells. Without ``exact_sum`` a value counts as its cell's middle."""
    result, seen, cell = [], 0, 0
    for bound in bounds:
        while cell < len(cells) and bounds_of(cell)[1] <= bound:
            seen += cells[cell]
            cell += 1
        result.append((repr(bound / divisor), seen))
    result.append(("+Inf", sum(cells)))
    if exact_sum is None:
        exact_sum = sum(count * sum(bounds_of(cell)) / 2 for cell, count in enumerate(cells) if count)
    return result, exact_sum / divisor


class Collector:
    """What prometheus_client's registry asks on every scrape. Give it each new sample; it answers with the last."""

    def __init__(self) -> None:
        from prometheus_client import core

        self._families = {
            "gauge": core.GaugeMetricFamily,
            "counter": core.CounterMetricFamily,
            "histogram": core.HistogramMetricFamily,
        }
        self._latest: tuple[Sample, Window | None] | None = None

    def update(self, sample: Sample, window: Window | None) -> None:
        """Take over a new sample. One assignment: a scrape in another thread sees the old pair or the new one."""
        self._latest = (sample, window)

    def describe(self) -> list:
        """Nothing is checked at registration: the names are known from METRICS."""
        return []

    def collect(self) -> Iterator:
        """The metric families of the latest sample; while the device is away only what it is and that it is away."""
        latest = self._latest
        if latest is None:
            return
        sample, window = latest
        common = (sample.device.name, sample.device.netns or "")
        for metric in METRICS if sample.present else METRICS[:2]:
            family = self._families[metric.kind](metric.name, metric.help, labels=metric.labels)
            for labels, value in metric.read(sample, window):
                if metric.kind == "histogram":
                    counts, total = buckets(*value)
                    family.add_metric((*common, *labels), buckets=counts, sum_value=total)
                else:
                    family.add_metric((*common, *labels), float(value))
            if family.samples:
                yield family
