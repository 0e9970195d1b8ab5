"""Share of looks at which devices were stopped, for a list of many devices: a word of memory a queue, nothing attached."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from bqltop.discovery.devices import Key, Listed, Rates
from bqltop.kernel import netns
from bqltop.kernel.bpf import BpfError, available
from bqltop.kernel.btf import Btf, BtfError
from bqltop.kernel.engine import StateBits
from bqltop.kernel.memory import Memory
from bqltop.kernel.target import find_device

LOOKS, BETWEEN_S = 8, 0.007
"""Looks a round, and the odd time between two: nothing in a kernel has this period."""
MOST_DEVICES, MOST_QUEUES = 64, 64
"""Looked at in a round: the busiest devices, and of each so many queues."""


@dataclass(slots=True)
class _Place:
    """Where a device lies in memory. ``net`` of its namespace: an index found there again is the same device."""

    device: int
    txq: int
    queues: int


class Looks:
    """Without the right to read memory ``shares`` is always empty. For one thread at a time."""

    def __init__(self, use_bpf: bool = True):
        self._memory: Memory | None = None
        self._nets: dict[int, int] = {}
        self._places: dict[Key, _Place] = {}
        self._to_be_opened = use_bpf

    def _open(self) -> None:
        """At the first look, not before: it takes a fifth of a second, in which a screen can begin."""
        self._to_be_opened = False
        try:
            available()
            self._memory = Memory()
            self._bits = StateBits.from_btf()
            self._btf = Btf.vmlinux()
        except (BpfError, BtfError):
            self.close()

    def shares(self, devices: Iterable[Listed], rates: Mapping[Key, Rates]) -> dict[Key, float]:
        """Share of the looks of the next 50 ms at which some queue of the device was stopped. A device that sent nothing,
        has nothing waiting and was not stopped at the first look is not asked again; those are left out that do not fit."""
        if self._to_be_opened:
            self._open()
        if self._memory is None:
            return {}
        busy = [d for d in devices if d.qdisc not in (None, "noqueue") and d.up]
        busy.sort(key=lambda d: (-d.backlog_packets, -(rates[d.key].tx_packets if d.key in rates else 0)))
        watched = [d for d in busy[:MOST_DEVICES] if self._find(d)]
        self._nets.clear()  # the number of a namespace that has gone is given to the next one
        keys = {d.key for d in watched}
        self._places = {key: place for key, place in self._places.items() if key in keys}
        seen = dict.fromkeys(keys, 0)
        for number in range(LOOKS):
            for key in list(seen):
                stopped = self._stopped(key)
                if stopped is None:
                    del seen[key]
                else:
                    seen[key] += stopped
            if number + 1 < LOOKS and seen:
                time.sleep(BETWEEN_S)
        return {key: count / LOOKS for key, count in seen.items()}

    def _find(self, device: Listed) -> bool:
        """Know where the device lies; what was known is checked by its index."""
        memory, btf, place = self._memory, self._btf, self._places.get(device.key)
        try:
            if place and self._same(place, device.ifindex):
                return True
            inode = device.namespace.inode
            if inode not in self._nets:
                self._nets[inode] = memory.net(device.namespace)
            address = find_device(memory, btf, self._nets[inode], device.ifindex)
            txq = memory.number(address + btf.offset("net_device", "_tx"))
            self._places[device.key] = _Place(address, txq, min(device.tx_queues, MOST_QUEUES))
        except (BpfError, netns.NetnsError, OSError):
            self._places.pop(device.key, None)
            self._nets.pop(device.namespace.inode, None)
            return False
        return True

    def _same(self, place: _Place, ifindex: int) -> bool:
        """Whether that memory still is this device: freed memory does not have both its index and its queues."""
        at, offset = place.device, self._btf.offset
        here = self._memory.number(at + offset("net_device", "ifindex"), 4), self._memory.number(at + offset("net_device", "_tx"))
        return here == (ifindex, place.txq)

    def _stopped(self, key: Key) -> bool | None:
        """Whether any queue is stopped at this instant."""
        place, size = self._places[key], self._btf.size("netdev_queue")
        mask = self._bits.drv_xoff | self._bits.stack_xoff
        state = self._btf.offset("netdev_queue", "state")
        try:
            return any(self._memory.number(place.txq + n * size + state) & mask for n in range(place.queues))
        except BpfError:
            return None

    def close(self) -> None:
        if self._memory is not None:
            self._memory.close()
            self._memory = None
