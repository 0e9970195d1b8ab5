"""From what the kernel holds to what a sample says: wrapping counters, torn reads, jiffies. Pure."""

from __future__ import annotations

from bqltop.kernel.engine import QueueReading, StateBits
from bqltop.model import QueueSample, Unit

WRAP = 1 << 32


class Wrapping:
    """A 32-bit counter of the kernel continued as a 64-bit count since the first look.

    Right as long as it grows by less than 2^32 between two looks; the sampler looks at least ten times a second
    (100 Gbit/s of bytes take 0.34 s to wrap).
    """

    __slots__ = ("_last", "total")

    def __init__(self, first: int):
        self._last, self.total = first, 0

    def look(self, value: int) -> int:
        """The count since the first look, after the counter now reads ``value``."""
        self.total += self.growth(value)
        self._last = value
        return self.total

    def growth(self, value: int) -> int:
        """What ``look`` would add."""
        return (value - self._last) % WRAP

    def fell(self, value: int) -> bool:
        """Whether ``value`` is below the last one: the counter has wrapped, or was set to 0."""
        return value < self._last

    def begin_anew(self, value: int) -> None:
        """The counter was set to 0 since the last look, and has grown to ``value``."""
        self.total += value
        self._last = value


LARGEST_PACKET = 8 * 65535
"""Bytes: GSO_MAX_SIZE (include/linux/netdevice.h), the most one transmit charges."""
RESET = 1 << 28
"""Growth, between two looks, from which on it may be no growth: 21 Gbit/s in 0.1 s. Senders that the transmit tracepoint does
not see (pktgen, PACKET_QDISC_BYPASS) stay below it."""


class DqlCounters:
    """num_queued and num_completed of one dql as counts since the first look.

    dql_reset() (lib/dynamic_queue_limits.c) sets both to 0 when the link goes down and up or the rings are made anew. Taken
    for a wrap that would be 4 GB sent in an instant. What tells the two apart: the packets that went out meanwhile cannot
    have been that many bytes.
    """

    __slots__ = ("_completed", "_packets", "_queued")

    def __init__(self, num_queued: int, num_completed: int, packets: int):
        self._queued, self._completed, self._packets = Wrapping(num_queued), Wrapping(num_completed), packets

    @property
    def queued(self) -> int:
        return self._queued.total

    @property
    def completed(self) -> int:
        return self._completed.total

    def look(self, num_queued: int, num_completed: int, packets: int) -> None:
        """Take notice of the counters, ``packets`` having been transmitted in all."""
        if self._were_reset(num_queued, num_completed, packets - self._packets):
            self._queued.begin_anew(num_queued)
            self._completed.begin_anew(num_completed)
        else:
            self._queued.look(num_queued)
            self._completed.look(num_completed)
        self._packets = packets

    def _were_reset(self, num_queued: int, num_completed: int, transmitted: int) -> bool:
        return (
            self._queued.fell(num_queued)
            and self._completed.fell(num_completed)
            and self._queued.growth(num_queued) > max(RESET, transmitted * LARGEST_PACKET)
        )


def inflight(num_queued: int, num_completed: int) -> tuple[int, bool]:
    """(inflight, torn): the difference of two 32-bit counters that wrap. They lie on two cache lines and can be read
    torn, a completion before its packet: that difference is "negative", means 0, and is reported as torn."""
    difference = (num_queued - num_completed) % WRAP
    return (0, True) if difference >= WRAP // 2 else (difference, False)


class QueueCounter:
    """One TX queue's readings as samples. Keeps what a sample needs of the past: the wrapping counters."""

    def __init__(self, index: int, unit: Unit | None, bits: StateBits, ms_per_jiffy: float):
        self._index, self._unit, self._bits, self._ms = index, unit, bits, ms_per_jiffy
        self._counters: DqlCounters | None = None
        self._torn = 0
        self._charged = False

    def look(self, num_queued: int, num_completed: int, packets: int) -> DqlCounters:
        """Take notice of the wrapping counters, also between samples."""
        if self._counters is None:
            self._counters = DqlCounters(num_queued, num_completed, packets)
        self._counters.look(num_queued, num_completed, packets)
        return self._counters

    def sample(self, reading: QueueReading) -> QueueSample:
        """The reading in the sample's words. Without BQL its figures are None, not what an unused dql holds."""
        bits = self._bits
        return QueueSample(
            index=self._index,
            drv_xoff=bool(reading.state & bits.drv_xoff),
            stack_xoff=bool(reading.state & bits.stack_xoff),
            frozen=bool(reading.state & bits.frozen),
            packets=reading.packets,
            busy=reading.busy,
            stops_driver=reading.stops_driver,
            stops_bql=reading.stops_bql,
            wakes_driver=reading.wakes_driver,
            wakes_bql=reading.wakes_bql,
            stopped_driver_ns=reading.stopped_driver_ns,
            stopped_bql_ns=reading.stopped_bql_ns,
            stopped_ns=reading.stopped_ns,
            ring_size=reading.ring_size,
            ring_used=reading.ring_used,
            tx_timeouts=reading.timeouts,
            **(_sojourn(reading) if reading.sojourn else {}),
            **(self._bql(reading) if self._uses_bql(reading) else {}),
        )

    def _uses_bql(self, reading: QueueReading) -> bool:
        """Whether the queue's dql means anything. Since 6.9 the BQL files are shown wherever a driver might use them
        (netdev_uses_bql(), net/core/net-sysfs.c), also where it never does (usbnet before 6.19, ifb): packets that went
        out without a charge give that away."""
        self._charged = self._charged or reading.num_queued != 0
        return self._unit is not None and (self._charged or not reading.packets)

    def _bql(self, reading: QueueReading) -> dict:
        counters = self.look(reading.num_queued, reading.num_completed, reading.packets)
        outstanding, torn = inflight(reading.num_queued, reading.num_completed)
        self._torn += torn
        return {
            "unit": self._unit,
            "limit": reading.limit,
            "limit_min": reading.limit_min,
            "limit_max": reading.limit_max,
            "hold_time_ms": round(reading.hold_time * self._ms),
            "inflight": outstanding,
            "queued": counters.queued,
            "completed": counters.completed,
            "stall_threshold_ms": _milliseconds(reading.stall_threshold, self._ms),
            "stall_max_ms": _milliseconds(reading.stall_max, self._ms),
            "stall_count": reading.stall_count,
            "torn_reads": reading.torn + self._torn,
            "inflight_histogram": reading.inflight_histogram,
            "completion_size_histogram": reading.completion_size_histogram,
            "completion_interval_histogram": reading.completion_interval_histogram,
        }


def _sojourn(reading: QueueReading) -> dict:
    waits = reading.sojourn
    return {
        "sojourn_sampled": waits.sampled,
        "sojourn_lost": waits.lost,
        "qdisc_sojourn_histogram": waits.qdisc,
        "ring_sojourn_histogram": waits.ring,
    }


def _milliseconds(jiffies: int | None, ms_per_jiffy: float) -> int | None:
    return None if jiffies is None else round(jiffies * ms_per_jiffy)
