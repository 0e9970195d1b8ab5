"""All devices there are, and going from one to another: what the screen's device list and its keys p and n work with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from bqltop.discovery import devices, neighbours
from bqltop.discovery.devices import Key, Listed, Rates
from bqltop.discovery.neighbours import Neighbour
from bqltop.kernel.bpf import BpfError
from bqltop.kernel.bpfstats import Statistics
from bqltop.kernel.netns import NetnsError
from bqltop.kernel.rtnl import Rtnl
from bqltop.looks import Looks
from bqltop.many import Many
from bqltop.model import Namespace
from bqltop.presence import NoSuchDevice
from bqltop.sampler import Sampler

Open = Callable[[str | int, Namespace], Sampler]
"""Opens a sampler on a device, by name or index, of a namespace. Raises NoSuchDevice, NetnsError, OSError."""


@dataclass(frozen=True, slots=True)
class Roll:
    """Every device now. ``rates`` since the look before; ``stopped``: share (0..1) of the looks at which a queue of it
    was stopped; ``watched``: stream by device; ``unreachable``: sentences about namespaces that could not be entered."""

    devices: tuple[Listed, ...] = ()
    rates: Mapping[Key, Rates] = field(default_factory=dict)
    stopped: Mapping[Key, float] = field(default_factory=dict)
    watched: Mapping[Key, int] = field(default_factory=dict)
    unreachable: tuple[str, ...] = ()


class Roster:
    """``list`` and ``neighbours`` ask the kernel and may take a while: each for one thread at a time. The rest
    returns at once and may be called from any."""

    def __init__(self, source: Many | None = None, open_sampler: Open | None = None, use_bpf: bool = True):
        self._source, self._open = source, open_sampler
        self._lister = devices.Lister()
        self._looks = Looks(use_bpf)
        self._before: devices.Listing | None = None
        self._statistics: Statistics | None = None

    def list(self) -> Roll:
        """Every device of every namespace that can be seen."""
        listing = self._lister.list()
        rates, self._before = devices.rates(self._before, listing), listing
        unreachable = tuple(f"{visible.namespace.name or 'a namespace'}: {why}" for visible, why in listing.unreachable)
        return Roll(listing.devices, rates, self._looks.shares(listing.devices, rates), self._watched(), unreachable)

    def _watched(self) -> dict[Key, int]:
        samplers = self._source.samplers if self._source else ()
        return {(sampler.namespace.inode, sampler.device.ifindex): sampler.stream for sampler in samplers}

    def stream_of(self, where: Namespace, ifindex: int) -> int | None:
        """The stream of a device that is being watched."""
        return self._watched().get((where.inode, ifindex))

    def neighbours(self, stream: int) -> list[Neighbour]:
        """What a watched device is connected to; nothing while it is away."""
        sampler = self._source.sampler(stream) if self._source else None
        if sampler is None:
            return []
        try:
            with Rtnl(sampler.namespace) as rtnl:
                return neighbours.neighbours(rtnl, sampler.device.ifindex)
        except (NetnsError, OSError):
            return []

    def watch(self, where: Namespace, which: str | int, tell: Callable[[int | None, str], object]) -> None:
        """Begin to watch a device. ``tell`` is called in the sampling thread: with its stream, or with None and what
        is in the way."""

        def attach() -> None:
            try:
                stream = self._source.add(self._open(which, where))
            except (NoSuchDevice, NetnsError, BpfError, OSError) as error:
                tell(None, str(error))
            else:
                tell(stream, "")

        self._source.order(attach)

    def drop(self, stream: int) -> None:
        """Watch a device no longer."""
        self._source.order(lambda: self._source.drop(stream))

    def account(self, on: bool) -> str | None:
        """Have the kernel count what our eBPF programs cost, as long as it is on. Why not, where it cannot be."""
        if self._statistics is not None:
            self._statistics.close()
            self._statistics = None
        why = None
        if on:
            try:
                self._statistics = Statistics()
            except BpfError as error:
                why = str(error)
        for sampler in self._source.samplers if self._source else ():
            sampler.account = self._statistics is not None
        return why

    def close(self) -> None:
        self.account(False)
        self._looks.close()
