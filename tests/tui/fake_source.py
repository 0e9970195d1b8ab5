"""A source of plausible, deterministic Samples: the screen's tests and its cost measurement need no kernel.

The traffic is a function of the tick alone, so two runs draw the same screen.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

from bqltop.histogram import LINEAR_WORK_CELLS, LOG_LINEAR_CELLS, log_linear_cell
from bqltop.model import (
    CpuSample,
    Device,
    Event,
    LinkStats,
    NapiSample,
    Peer,
    Probe,
    QdiscSample,
    QueueSample,
    Sample,
    SelfSample,
    Unit,
)

START_NS = 1_796_047_402_000_000_000
"""2026-11-30 14:03:22 UTC."""
UNLIMITED = 1879048192
DAY_NS = 86_400_000_000_000


@dataclass(frozen=True)
class Traffic:
    """What one queue does at a moment: rates per second, shares 0..1, levels in the queue's unit or packets."""

    packets: float = 0.0
    busy: float = 0.0
    driver_share: float = 0.0
    bql_share: float = 0.0
    inflight: int = 0
    limit: int = 0
    ring: int = 0


class Counters:
    """One queue's cumulative figures, fed tick by tick."""

    def __init__(self) -> None:
        self.packets = self.busy = self.units = 0.0
        self.driver_ns = self.bql_ns = 0
        self.stops_driver = self.stops_bql = 0
        self.inflight = [0] * LOG_LINEAR_CELLS
        self.ring_sojourn = [0] * LOG_LINEAR_CELLS
        self.qdisc_sojourn = [0] * LOG_LINEAR_CELLS

    def feed(self, now: Traffic, seconds: float, per_packet: int) -> None:
        """Add what ``now`` means over ``seconds``."""
        self.packets += now.packets * seconds
        self.units += now.packets * seconds * per_packet
        self.busy += now.busy * seconds
        self.driver_ns += int(now.driver_share * seconds * 1e9)
        self.bql_ns += int(now.bql_share * seconds * 1e9)
        self.stops_driver += math.ceil(now.driver_share * 40 * seconds)
        self.stops_bql += math.ceil(now.bql_share * 200 * seconds)
        sampled = max(1, int(now.packets * seconds / 64))
        self.inflight[log_linear_cell(now.inflight)] += sampled * 64
        if now.packets and now.ring:
            self.ring_sojourn[log_linear_cell(int(now.ring / now.packets * 1e9))] += sampled
            self.qdisc_sojourn[log_linear_cell(250_000)] += sampled


class FakeSource:
    """Plays a scenario: "veth" (no BQL, flooded), "bytes" (BQL in bytes), "packets" (BQL with a limit of 2 packets), "busy"
    (the same on every queue; else four of five are idle). ``every`` paces in real time; ``samples`` does not wait.

    ``away_after``: the tick at which the device goes away; ``ebpf=False``: only what sysfs and netlink know.
    """

    def __init__(self, scenario: str = "veth", queues: int = 1, *, ebpf: bool = True, away_after: int | None = None,
                 name: str = "veth0", interval: float = 0.1) -> None:
        self.scenario, self.count, self.ebpf, self.away_after = scenario, queues, ebpf, away_after
        self.interval = interval
        self.description = f"a made-up device ({scenario})"
        self.closed = 0
        self._name = name
        self._tick = 0
        self._clock_ns = DAY_NS
        self._counters = [Counters() for _ in range(queues)]
        self._polls = self._work = self._full = 0
        self._work_cells = [0] * LINEAR_WORK_CELLS
        self._stop = threading.Event()

    # -- the source contract -------------------------------------------------------------------------------------

    def every(self, interval_s: float) -> Iterator[Sample]:
        self.interval = interval_s
        due = time.monotonic()
        while not self._stop.is_set():
            yield self.sample()
            due = max(due + self.interval, time.monotonic())
            self._stop.wait(due - time.monotonic())

    def close(self) -> None:
        self.closed += 1
        self._stop.set()

    # -- the traffic ---------------------------------------------------------------------------------------------

    def samples(self, count: int) -> Iterator[Sample]:
        """``count`` samples, ``interval`` apart on their own clock, at once."""
        for _ in range(count):
            yield self.sample()

    def sample(self) -> Sample:
        """The next sample."""
        tick, seconds = self._tick, self.interval
        present = self.away_after is None or tick < self.away_after
        self._tick += 1
        self._clock_ns += int(seconds * 1e9)
        traffic = [self._traffic(index, tick * seconds) for index in range(self.count)]
        if present:
            for counters, now in zip(self._counters, traffic, strict=True):
                counters.feed(now, seconds, self._per_packet)
            self._feed_napi(sum(now.packets for now in traffic) * seconds)
        return Sample(
            time_ns=START_NS + self._clock_ns - DAY_NS,
            monotonic_ns=self._clock_ns,
            device=self._device(present),
            queues=tuple(self._queue(index, now) for index, now in enumerate(traffic)),
            qdiscs=self._qdiscs(traffic),
            napis=self._napis(),
            link=self._link(),
            probes=self._probes(),
            events=self._events(tick),
            cpus=(CpuSample(0, self._clock_ns / 1e9 * 0.21, self._clock_ns / 1e9, tick * 90, tick * 110),),
            own=SelfSample(cpu_s=self._clock_ns / 1e9 * 0.031, rss_bytes=157_000_000, read_ns=180_000),
            epoch=1,
            present=present,
        )

    @property
    def _per_packet(self) -> int:
        return 1514 if self.scenario == "bytes" else 1

    def _traffic(self, index: int, seconds: float) -> Traffic:
        wave = 0.5 + 0.5 * math.sin(seconds / 3 + index * 0.7)
        ripple = math.sin(seconds * 7.3 + index)
        busy_queue = index % 5 == 0 or self.scenario == "busy"
        if not busy_queue:
            return Traffic(limit=0 if self.scenario == "veth" else 15_140 if self.scenario == "bytes" else 2)
        if self.scenario == "bytes":
            limit = 15_140 + 1514 * int(8 * wave)
            return Traffic(packets=81_000 + 4000 * ripple, bql_share=0.42 + 0.2 * wave, limit=limit,
                           inflight=int(limit * (0.8 + 0.15 * ripple)))
        if self.scenario in ("packets", "busy"):
            return Traffic(packets=63_000 + 2500 * ripple, busy=11_000 + 4000 * wave, bql_share=0.71 + 0.1 * wave,
                           limit=2, inflight=1 + (ripple > 0), ring=1 + (ripple > 0))
        ring = 256 - int(abs(12 * ripple))
        return Traffic(packets=71_200 + 3000 * ripple, busy=1400 + 500 * wave, driver_share=0.88 + 0.08 * wave,
                       ring=ring, inflight=ring)

    def _queue(self, index: int, now: Traffic) -> QueueSample:
        counters, bql, ring = self._counters[index], self.scenario != "veth", self.scenario != "bytes"
        sample = QueueSample(index=index, tx_timeouts=1 if self.scenario == "veth" and index == 5 else 0)
        if bql:
            sample = replace(sample, unit=Unit.BYTES if self.scenario == "bytes" else Unit.PACKETS, limit=now.limit,
                             limit_min=0, limit_max=UNLIMITED, hold_time_ms=1000, inflight=now.inflight)
        if not self.ebpf:
            return sample
        sample = replace(
            sample,
            drv_xoff=now.driver_share > 0.5, stack_xoff=now.bql_share > 0.5, frozen=False,
            packets=int(counters.packets), busy=int(counters.busy),
            stops_driver=counters.stops_driver, stops_bql=counters.stops_bql,
            wakes_driver=counters.stops_driver, wakes_bql=counters.stops_bql,
            stopped_driver_ns=counters.driver_ns, stopped_bql_ns=counters.bql_ns,
            stopped_ns=counters.driver_ns + counters.bql_ns,
            ring_sojourn_histogram=tuple(counters.ring_sojourn), qdisc_sojourn_histogram=tuple(counters.qdisc_sojourn),
            torn_reads=0,
        )
        if ring:
            sample = replace(sample, ring_size=256, ring_used=now.ring)
        if bql:
            queued = int(counters.units)
            sample = replace(sample, queued=queued, completed=max(0, queued - now.inflight),
                             inflight_histogram=tuple(counters.inflight))
        return sample

    def _feed_napi(self, packets: float) -> None:
        work = 3 if self.scenario == "packets" else 62
        polls = int(packets / work)
        full = 0 if self.scenario == "packets" else int(polls * 0.9)
        self._polls += polls
        self._work += int(packets)
        self._full += full
        self._work_cells[64] += full
        spread = (0.5, 0.3, 0.2)
        for offset, share in enumerate(spread):
            self._work_cells[max(0, work - 2 - offset * (1 if work < 8 else 9))] += int((polls - full) * share)

    def _napis(self) -> tuple[NapiSample, ...]:
        if not self.ebpf:
            return ()
        device, role = ("usb0", "device") if self.scenario == "bytes" else ("eth0", "peer")
        return (NapiSample(device, 258, self._polls, self._work, self._full, tuple(self._work_cells), role, 0),)

    def _device(self, present: bool) -> Device:
        if self.scenario == "bytes":
            return Device(self._name, 4, "cdc_ncm", None, None, None, 1500, 1000, self.count, 1, "UP", "fq_codel")
        napi_mode = None if not self.ebpf else True
        state = "UP" if present else "NOTPRESENT"
        return Device(self._name, 7, "veth", "veth", None, Peer(2, "eth0", "web-1"), 1500, 1000, self.count, 1, state,
                      "mq" if self.count > 1 else "pfifo", napi_mode)

    def _qdiscs(self, traffic: list[Traffic]) -> tuple[QdiscSample, ...]:
        def one(kind: str, handle: str, parent: str, packets: float, requeues: float, txq: int | None) -> QdiscSample:
            backlog = 1000 if packets and self.scenario == "veth" else 37 if packets else 0
            drops = int(packets * 4.3) if self.scenario == "veth" else int(packets * 0.01)
            return QdiscSample(kind, handle, parent, int(packets), int(packets * 106), drops, int(requeues), 0,
                               backlog * 106, backlog, txq)

        packets = [counters.packets for counters in self._counters]
        busy = [counters.busy for counters in self._counters]
        if self.count == 1:
            kind = "fq_codel" if self.scenario == "bytes" else "pfifo"
            return (one(kind, "8002:", "root", packets[0], busy[0], None),)
        root = one("mq", "0:", "root", sum(packets), sum(busy), None)
        return (root, *(one("fq_codel", "0:", f":{i + 1:x}", packets[i], busy[i], i) for i in range(self.count)))

    def _link(self) -> LinkStats:
        packets = int(sum(counters.packets for counters in self._counters))
        return LinkStats(packets, packets * 1514, 0, 0, packets // 50, packets, 0, 0)

    def _probes(self) -> tuple[Probe, ...]:
        if self.ebpf:
            return (Probe("bpf", True, "wake-ups exact (kprobe)"), Probe("netlink", True), Probe("sysfs", True))
        return (
            Probe("bpf", False, "needs root: sudo bqltop veth0"),
            Probe("netlink", True),
            Probe("sysfs", True),
        )

    def _events(self, tick: int) -> tuple[Event, ...]:
        at = START_NS + self._clock_ns - DAY_NS
        if tick == 0:
            return (Event(at, "attached", f"attached to {self._name} [index 7]"),)
        if tick % 47 == 20 and self.scenario == "veth":
            return (Event(at, "stop", "stopped by driver for 212 ms", 0),)
        if tick % 131 == 60:
            return (Event(at, "qdisc", "qdisc replaced: sfq -> pfifo"),)
        if self.away_after == tick:
            return (Event(at, "gone", "device deleted"),)
        return ()
