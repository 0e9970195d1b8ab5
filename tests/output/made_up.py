"""Made-up samples with every kind of value in them, for the tests of what is written and read."""

import typing
from dataclasses import fields, is_dataclass, replace
from enum import Enum

from bqltop.histogram import LINEAR_WORK_CELLS, LOG_LINEAR_CELLS
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
)  # fmt: skip

START_NS = 1_790_000_000_000_000_000


def cells(length: int = LOG_LINEAR_CELLS, **counts: int) -> tuple[int, ...]:
    filled = [0] * length
    for cell, count in counts.items():
        filled[int(cell[1:])] = count
    return tuple(filled)


def queue(index: int = 0, tick: int = 0, **changes) -> QueueSample:
    """A queue that sends 1000 packets per tick and is stopped for half of each 100 ms tick."""
    figures = QueueSample(
        index=index, drv_xoff=True, stack_xoff=False, frozen=False, unit=Unit.PACKETS, limit=16, limit_min=0,
        limit_max=1879048192, hold_time_ms=1000, inflight=18, queued=1000 * tick + 18, completed=1000 * tick,
        packets=1000 * tick + 18, busy=20 * tick, stops_driver=10 * tick, stops_bql=0,
        stopped_driver_ns=50_000_000 * tick, stopped_bql_ns=0, stopped_ns=50_000_000 * tick, ring_size=256,
        ring_used=250, tx_timeouts=0, inflight_histogram=cells(c12=1000 * tick),
        ring_sojourn_histogram=cells(c70=15 * tick),
    )  # fmt: skip
    return replace(figures, **changes)


def sample(tick: int = 0, queues=1, **changes) -> Sample:
    """The sample of a tick (100 ms) with so many, or with these, ``queues``."""
    made = queues if isinstance(queues, tuple) else tuple(queue(index, tick) for index in range(queues))
    figures = Sample(
        time_ns=START_NS + tick * 100_000_000,
        monotonic_ns=5_000_000_000 + tick * 100_000_000,
        device=Device("veth0", 7, "veth", "veth", "blue", Peer(8, "eth0", "red"), 1500, 1000, len(made), 0x1043, "UP", "pfifo",
                      True),
        queues=made,
        qdiscs=(QdiscSample("pfifo", "8002:", "root", 1000 * tick, 64_000 * tick, 31_000 * tick, 20 * tick, 0, 106_000,
                            1000, extra={"flows": 3}, options={"limit": 1000}),),
        napis=(NapiSample("eth0", 258, 16 * tick, 1000 * tick, 15 * tick,
                          cells(LINEAR_WORK_CELLS, c40=tick, c64=15 * tick), "peer", 0),),
        link=LinkStats(1000 * tick, 64_000 * tick, 0, 0, 0, 0, 0, 0),
        probes=(Probe("bpf", True, "wake-ups seen at the next transmit"), Probe("kprobe", False, "no kprobes here")),
        cpus=(CpuSample(0, 0.05 * tick, 0.1 * tick, tick, 2 * tick),),
        own=SelfSample(0.002 * tick, 40_000_000, 300_000, 20_000, 0),
    )  # fmt: skip
    return replace(figures, **changes)


def everything() -> Sample:
    """A sample in which no field is at its default: whatever is added to the vocabulary must survive every way to keep
    it."""
    return _fill(Sample, "sample")


def _fill(hint, name: str):
    """Some value of a type annotation, different for every name."""
    number = 2 + sum(map(ord, name)) % 1000
    if isinstance(hint, type) and issubclass(hint, Enum):
        return list(hint)[-1]
    if is_dataclass(hint):
        hints = typing.get_type_hints(hint)
        return hint(**{f.name: 1 if f.name == "schema" else _fill(hints[f.name], f.name) for f in fields(hint)})
    if name.endswith("_histogram"):
        return cells(LINEAR_WORK_CELLS if name == "work_histogram" else LOG_LINEAR_CELLS, c3=number, c40=1)
    inner = [part for part in typing.get_args(hint) if part not in (type(None), Ellipsis)]
    if typing.get_origin(hint) is tuple:
        return (_fill(inner[0], name),) * 2
    if typing.get_origin(hint) is dict:
        return {name: _fill(inner[1], name)}
    if inner:
        return _fill(inner[0], name)
    return {bool: True, int: number, float: number + 0.5, str: f"<{name}>"}[hint]


def samples(count: int, queues: int = 1) -> list[Sample]:
    return [sample(tick, queues) for tick in range(count)]


def with_event(of: Sample, kind: str = "device", text: str = "up") -> Sample:
    return replace(of, events=(Event(of.time_ns, kind, text, 0),))


class Source:
    """A source that has its samples ready."""

    def __init__(self, ready):
        self.ready, self.interval = ready, None

    def every(self, interval_s):
        self.interval = interval_s
        yield from self.ready
