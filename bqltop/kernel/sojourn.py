"""Sojourn times: how long sampled packets wait in the qdisc and in the ring (programs/sojourn.c), and how many to sample.

A part of the engine: it shares the engine's compiled text, so that the transmit path carries one program and not two.
"""

from __future__ import annotations

import struct
import time
from collections import deque
from enum import IntEnum
from typing import NamedTuple

from bqltop.histogram import LOG_LINEAR_CELLS
from bqltop.kernel.bpf import BpfError, Module
from bqltop.kernel.target import Ring, Target
from bqltop.model import Probe

OFFSETS = {
    "netdev_queue": ("qdisc",),
    "sk_buff": ("dev",),
    "Qdisc": ("flags", "q.qlen"),
}
"""What programs/sojourn.c needs beside the offsets of the engine."""

PACE_S = 0.1
"""Time between two adjustments of the sampling rate."""
FEW, MANY = 250, 1000
"""Sampled packets per second to stay between. At 0.5 us for the three looks at a sampled packet, MANY is 0.05 % of a CPU."""
CREDIT = 1000
"""Packets that may be sampled until the next adjustment: the bound when the packet rate jumps."""
REMEMBERED = 50
"""Adjustments that packets may be under way for: 5 s."""
CALM = 10
"""Adjustments with too few packets before more are sampled."""
FIRST_MASK = 0x7
WIDEST_MASK = 0xFFFF
_CONTROL = struct.Struct("<3Qq")
_HEAD = struct.Struct("<3Q")
_NO_RING, _CELLS = 40, 48
_CELL = _CELLS + 2 * LOG_LINEAR_CELLS * 8
"""struct sojourn_cell: where its flag and its distributions begin, and its size."""


class Arrival(IntEnum):
    """What tells that a packet has left the ring (ARRIVAL_* in programs/sojourn.c)."""

    NONE = 0
    PEER = 1
    FREED = 2


class SojournReading(NamedTuple):
    """One TX queue: packets ``sampled`` so far, of which ``ended`` were timed to the end and ``lost`` were dropped or
    mistaken; the rest is under way. Histograms over nanoseconds; ``ring`` is None where no arrival is to be seen."""

    sampled: int
    ended: int
    lost: int
    qdisc: tuple[int, ...]
    ring: tuple[int, ...] | None


def arrival_of(target: Target, bql: bool) -> Arrival:
    """How the end of a packet's time in the ring shows. A driver with BQL keeps its packets until they are sent."""
    if target.ring is Ring.VETH:
        return Arrival.PEER
    if bql or target.ring is not Ring.NONE:
        return Arrival.FREED
    return Arrival.NONE


class Pace:
    """How many packets to sample: the masks that their hashes are compared with. Pure; units: counts, seconds.

    ``mask`` is for packets that begin now; each mask is a part of every larger one."""

    def __init__(self, now: float):
        self.mask = FIRST_MASK
        self._before: deque[int] = deque(maxlen=REMEMBERED)
        self._since, self._sampled, self._calm = now, 0, 0

    def due(self, now: float) -> bool:
        return now - self._since >= PACE_S

    def adjust(self, sampled: int, now: float, exhausted: bool = False) -> None:
        """Take notice of the packets sampled so far: too many halve the share of packets, too few for CALM adjustments
        double it. ``exhausted``: some packets were not sampled though the mask let them through."""
        rate = (sampled - self._sampled) / (now - self._since)
        self._since, self._sampled = now, sampled
        self._before.append(WIDEST_MASK if exhausted else self.mask)
        while rate > MANY and self.mask < WIDEST_MASK:
            self.mask, rate = self.mask << 1 | 1, rate / 2
        self._calm = self._calm + 1 if rate < FEW else 0
        if self._calm >= CALM:
            self.mask, self._calm = self.mask >> 1, 0

    @property
    def match(self) -> int:
        """What a packet under way may have been sampled by: the mask of late that let most through."""
        return min(self.mask, *self._before) if self._before else self.mask

    @property
    def sure(self) -> int:
        """What lets only packets through that were sampled whenever they began: the mask of late that let fewest
        through."""
        return max(self.mask, *self._before) if self._before else self.mask


class Sojourns:
    """The sampling of one engine. ``why`` says why it is not in force; ``attach`` never raises."""

    def __init__(self, module: Module, target: Target, arrival: Arrival):
        self._module, self._queues, self._arrival = module, target.queues, arrival
        self._control = module.memory("sojourn_control")
        self._cells = module.memory("sojourns")
        self._cached: list[SojournReading | None] = [None] * target.queues
        self._pace = Pace(time.monotonic())
        self._set_control()
        self.why = self._attach()

    def _attach(self) -> str | None:
        try:
            if self._arrival is Arrival.PEER:
                self._module.attach("on_arrival", "napi_gro_receive_entry")
            elif self._arrival is Arrival.FREED:
                self._module.attach("on_arrival", "consume_skb")
            self._module.attach("on_enqueue", "qdisc_enqueue")
        except BpfError as error:
            return str(error)
        return None

    def pace(self) -> None:
        """Adjust the share of packets that is sampled; to be called often, does something once each PACE_S."""
        now = time.monotonic()
        if self._pace.due(now):
            sampled = sum(self._head(queue)[0] for queue in range(self._queues))
            self._pace.adjust(sampled, now, exhausted=_CONTROL.unpack_from(self._control)[3] <= 0)
            self._set_control()

    def _set_control(self) -> None:
        _CONTROL.pack_into(self._control, 0, self._pace.mask, self._pace.match, self._pace.sure, CREDIT)

    def _head(self, queue: int) -> tuple[int, int, int]:
        return _HEAD.unpack_from(self._cells, queue * _CELL)

    def read(self, queue: int) -> SojournReading:
        """One queue's counts and distributions now. Reading cells takes time: a queue that has not moved is not read."""
        head, cached = self._head(queue), self._cached[queue]
        if cached is not None and cached[:3] == head:
            return cached
        at = queue * _CELL + _CELLS
        cells = self._cells[at : at + 2 * LOG_LINEAR_CELLS * 8].cast("Q").tolist()
        ring = tuple(cells[LOG_LINEAR_CELLS:]) if self._arrival is not Arrival.NONE else None
        reading = SojournReading(*head, tuple(cells[:LOG_LINEAR_CELLS]), ring)
        self._cached[queue] = reading
        return reading

    def probe(self) -> Probe:
        """Whether it is in force, and what it cannot see."""
        if self.why:
            return Probe("sojourn", False, self.why)
        if all(struct.unpack_from("<Q", self._cells, queue * _CELL + _NO_RING)[0] for queue in range(self._queues)):
            return Probe("sojourn", True, NO_RING)
        return Probe("sojourn", True, _SEEN[self._arrival])

    def close(self) -> None:
        for view in (self._control, self._cells):
            view.release()


NO_RING = "sampled: the wait in the qdisc only; the device does not use its ring now (veth without NAPI mode)"
_SEEN = {
    Arrival.PEER: "sampled: from the qdisc to the driver to the peer",
    Arrival.FREED: "sampled: from the qdisc to the driver until it frees the packet",
    Arrival.NONE: "sampled: the wait in the qdisc only; when this driver lets go of a packet cannot be seen",
}
