"""What happened between two samples: rates, shares and the dark buffer. Pure arithmetic, no kernel."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from bqltop import histogram
from bqltop.model import Device, NapiSample, QdiscSample, QueueSample, Sample, Unit


@dataclass(frozen=True, slots=True)
class QueueWindow:
    """One TX queue between two samples.

    ``*_per_s`` are per second, ``*_share`` of the window's time (0..1), ``inflight_*`` over the transmits of the
    window in ``unit``. ``dark_buffer_s``: seconds a packet that enters the ring now will wait there = ring
    occupancy / completion rate. ``completed_per_s`` is in ``unit`` where the driver has BQL, else in packets.
    ``drained_per_s``: packets that left the ring. The sojourn figures are seconds.
    """

    index: int
    unit: Unit | None = None
    packets_per_s: float | None = None
    busy_per_s: float | None = None
    completed_per_s: float | None = None
    drained_per_s: float | None = None
    stopped_share: float | None = None
    stopped_driver_share: float | None = None
    stopped_bql_share: float | None = None
    stops_driver_per_s: float | None = None
    stops_bql_per_s: float | None = None
    inflight_mean: float | None = None
    inflight_p50: float | None = None
    inflight_p99: float | None = None
    dark_buffer_s: float | None = None
    tx_timeouts: int | None = None
    qdisc_sojourn_p50_s: float | None = None
    qdisc_sojourn_p99_s: float | None = None
    ring_sojourn_p50_s: float | None = None
    ring_sojourn_p99_s: float | None = None

    @property
    def idle(self) -> bool:
        """Nothing sent and never stopped in this window."""
        return not (self.packets_per_s or self.busy_per_s or self.stopped_share)


@dataclass(frozen=True, slots=True)
class QdiscWindow:
    """One qdisc between two samples; key is ``parent`` (handles repeat: an automatic mq has handle 0)."""

    kind: str
    handle: str
    parent: str
    packets_per_s: float
    bytes_per_s: float
    drops_per_s: float
    requeues_per_s: float
    overlimits_per_s: float
    backlog_bytes: int
    backlog_packets: int
    txq: int | None = None


@dataclass(frozen=True, slots=True)
class NapiWindow:
    """One NAPI instance between two samples. ``work_average``: packets per poll; ``full_share``: polls that used
    the whole budget; ``work_histogram`` as in NapiSample, of the window."""

    device: str
    napi_id: int
    polls_per_s: float
    work_per_s: float
    work_average: float | None
    full_share: float | None
    work_histogram: tuple[int, ...]
    role: str = "device"
    index: int | None = None


@dataclass(frozen=True, slots=True)
class LinkWindow:
    """The device's own counters between two samples."""

    tx_packets_per_s: float
    tx_bytes_per_s: float
    tx_dropped_per_s: float
    rx_packets_per_s: float
    rx_bytes_per_s: float


@dataclass(frozen=True, slots=True)
class Window:
    """Two samples' difference. ``seconds`` by the monotonic clock. ``newer`` is the sample it ends with."""

    seconds: float
    newer: Sample
    queues: tuple[QueueWindow, ...]
    qdiscs: tuple[QdiscWindow, ...]
    napis: tuple[NapiWindow, ...]
    link: LinkWindow | None = None
    own_cpu_share: float | None = None
    softirq_share: float | None = None

    @property
    def device(self) -> Device:
        return self.newer.device


def comparable(older: Sample | None, newer: Sample) -> bool:
    """Whether counters of the two may be subtracted: same attachment, the device there, time moved on."""
    return (
        older is not None
        and older.epoch == newer.epoch
        and older.present
        and newer.present
        and newer.monotonic_ns > older.monotonic_ns
    )


def between(older: Sample | None, newer: Sample) -> Window | None:
    """The window between two samples, or None where they must not be compared (a fresh baseline, a device away)."""
    if not comparable(older, newer):
        return None
    seconds = (newer.monotonic_ns - older.monotonic_ns) / 1e9
    before = {queue.index: queue for queue in older.queues}
    return Window(
        seconds=seconds,
        newer=newer,
        queues=tuple(queue_window(before.get(queue.index), queue, seconds) for queue in newer.queues),
        qdiscs=_qdisc_windows(older.qdiscs, newer.qdiscs, seconds),
        napis=_napi_windows(older.napis, newer.napis, seconds),
        link=_link_window(older, newer, seconds),
        own_cpu_share=(newer.own.cpu_s - older.own.cpu_s) / seconds if newer.own and older.own else None,
        softirq_share=_softirq_share(older, newer),
    )


def queue_window(older: QueueSample | None, newer: QueueSample, seconds: float) -> QueueWindow:
    """One queue's rates over ``seconds``. A queue that was not there before has no rates."""
    if older is None:
        return QueueWindow(newer.index, newer.unit)

    def rate(name: str) -> float | None:
        return _rate(getattr(older, name), getattr(newer, name), seconds)

    def share(name: str) -> float | None:
        value = rate(name)
        return None if value is None else min(1.0, value / 1e9)

    def cells(name: str) -> tuple[int, ...] | None:
        return histogram.difference(getattr(newer, name), getattr(older, name))

    inflight = cells("inflight_histogram")
    qdisc_sojourn, ring_sojourn = cells("qdisc_sojourn_histogram"), cells("ring_sojourn_histogram")
    packets, completed = rate("packets"), rate("completed")
    drained = _drained(older, newer, packets, completed, seconds)
    return QueueWindow(
        index=newer.index,
        unit=newer.unit,
        packets_per_s=packets,
        busy_per_s=rate("busy"),
        completed_per_s=drained if completed is None else completed,
        drained_per_s=drained,
        stopped_share=share("stopped_ns"),
        stopped_driver_share=share("stopped_driver_ns"),
        stopped_bql_share=share("stopped_bql_ns"),
        stops_driver_per_s=rate("stops_driver"),
        stops_bql_per_s=rate("stops_bql"),
        inflight_mean=histogram.mean(inflight),
        inflight_p50=histogram.percentile(inflight, 0.50),
        inflight_p99=histogram.percentile(inflight, 0.99),
        dark_buffer_s=_dark_buffer(newer, drained),
        tx_timeouts=_delta(older.tx_timeouts, newer.tx_timeouts),
        qdisc_sojourn_p50_s=_seconds(histogram.percentile(qdisc_sojourn, 0.50)),
        qdisc_sojourn_p99_s=_seconds(histogram.percentile(qdisc_sojourn, 0.99)),
        ring_sojourn_p50_s=_seconds(histogram.percentile(ring_sojourn, 0.50)),
        ring_sojourn_p99_s=_seconds(histogram.percentile(ring_sojourn, 0.99)),
    )


def _drained(older, newer, packets, completed, seconds) -> float | None:
    """Packets per second that left the ring: what went in less what the ring grew by. Without a ring it is what BQL
    saw completed, where BQL counts packets."""
    if packets is not None and newer.ring_used is not None and older.ring_used is not None:
        return max(0.0, packets - (newer.ring_used - older.ring_used) / seconds)
    return completed if newer.unit is Unit.PACKETS else None


def _dark_buffer(queue: QueueSample, drained: float | None) -> float | None:
    """Ring occupancy / rate at which it empties, in seconds. An empty ring holds nobody up; a full one that does
    not move has no such figure."""
    if queue.ring_used is None:
        return None
    if queue.ring_used == 0:
        return 0.0
    return queue.ring_used / drained if drained else None


def _qdisc_windows(older: Sequence[QdiscSample], newer: Sequence[QdiscSample], seconds: float) -> tuple[QdiscWindow, ...]:
    """Rates per qdisc. A qdisc that was replaced (another kind or handle on the same parent) starts afresh."""
    before = {(q.parent, q.kind, q.handle): q for q in older}
    windows = []
    for now in newer:
        then = before.get((now.parent, now.kind, now.handle), now)
        rates = {
            f"{name}_per_s": _rate(getattr(then, name), getattr(now, name), seconds) or 0.0
            for name in ("packets", "bytes", "drops", "requeues", "overlimits")
        }
        windows.append(
            QdiscWindow(now.kind, now.handle, now.parent, backlog_bytes=now.backlog_bytes,
                        backlog_packets=now.backlog_packets, txq=now.txq, **rates)
        )
    return tuple(windows)


def napi_names(napis: Sequence[NapiSample | NapiWindow]) -> list[tuple[str, str]]:
    """(role, name) of each NAPI instance, unique. The name is its id; those without one (id 0: netif_napi_add_tx() gives
    none, net/core/dev.c) are numbered in their order, which is that of their first polls: 0#1, 0#2, ..."""
    names, met = [], Counter()
    for napi in napis:
        met[napi.role, napi.napi_id] += 1
        nth = met[napi.role, napi.napi_id]
        names.append((napi.role, f"{napi.napi_id}" if napi.napi_id and nth == 1 else f"{napi.napi_id}#{nth}"))
    return names


def _napi_windows(older: Sequence[NapiSample], newer: Sequence[NapiSample], seconds: float) -> tuple[NapiWindow, ...]:
    before = dict(zip(napi_names(older), older, strict=True))
    windows = []
    for name, now in zip(napi_names(newer), newer, strict=True):
        then = before.get(name)
        polls = now.polls - (then.polls if then else 0)
        work = now.work - (then.work if then else 0)
        full = now.full_polls - (then.full_polls if then else 0)
        windows.append(
            NapiWindow(
                device=now.device,
                napi_id=now.napi_id,
                polls_per_s=polls / seconds,
                work_per_s=work / seconds,
                work_average=work / polls if polls else None,
                full_share=full / polls if polls else None,
                work_histogram=histogram.difference(now.work_histogram, then.work_histogram if then else None),
                role=now.role,
                index=now.index,
            )
        )
    return tuple(windows)


def _link_window(older: Sample, newer: Sample, seconds: float) -> LinkWindow | None:
    if older.link is None or newer.link is None:
        return None
    names = ("tx_packets", "tx_bytes", "tx_dropped", "rx_packets", "rx_bytes")
    rates = {f"{name}_per_s": _rate(getattr(older.link, name), getattr(newer.link, name), seconds) for name in names}
    return LinkWindow(**rates)


def _softirq_share(older: Sample, newer: Sample) -> float | None:
    """Share of all CPUs' time in softirq, or None when the CPUs were not read or the clock tick has not moved."""
    if not older.cpus or len(older.cpus) != len(newer.cpus):
        return None
    total = sum(cpu.total_s for cpu in newer.cpus) - sum(cpu.total_s for cpu in older.cpus)
    busy = sum(cpu.softirq_s for cpu in newer.cpus) - sum(cpu.softirq_s for cpu in older.cpus)
    return min(1.0, max(0.0, busy / total)) if total > 0 else None


def _rate(older: float | None, newer: float | None, seconds: float) -> float | None:
    change = _delta(older, newer)
    return None if change is None else change / seconds


def _delta(older, newer):
    """Growth of a counter; one that went back (reset by the driver) has no growth to tell."""
    if older is None or newer is None or newer < older:
        return None
    return newer - older


def _seconds(nanoseconds: float | None) -> float | None:
    return None if nanoseconds is None else nanoseconds / 1e9
