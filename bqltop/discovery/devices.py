"""All devices of all visible namespaces as light records: 30 microseconds a device, 0.7 ms a namespace.

Nothing stays open between two listings: sockets of a namespace would keep it alive.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from bqltop.discovery import containers
from bqltop.kernel import ioctls, netns, sysfs
from bqltop.kernel.links import Link
from bqltop.kernel.netns import Visible
from bqltop.kernel.rtnl import Rtnl
from bqltop.model import LinkStats, Namespace, Peer, QdiscSample, Unit

Key = tuple[int, int]
"""(inode of the namespace, interface index): what tells two devices apart."""

PAIRS = ("veth", "netkit", "vxcan")
"""Kinds whose two ends lead to each other."""


@dataclass(frozen=True, slots=True)
class Listed:
    """One device of the list. ``owner``: the container or process its namespace belongs to. ``bql``: whether it
    shows BQL files (None: its sysfs is out of reach). ``unit``: what BQL counts there. ``backlog_*``, ``requeues`` and
    ``drops``: of its root qdiscs together. ``peer``: the other end of a veth, the lower device of an upper one."""

    name: str
    ifindex: int
    namespace: Namespace
    owner: str | None = None
    driver: str | None = None
    kind: str | None = None
    up: bool = False
    oper_state: str = "UNKNOWN"
    peer: Peer | None = None
    bql: bool | None = None
    unit: Unit | None = None
    tx_queues: int = 1
    qdisc: str | None = None
    stats: LinkStats | None = None
    backlog_packets: int = 0
    backlog_bytes: int = 0
    requeues: int = 0
    drops: int = 0

    @property
    def key(self) -> Key:
        return self.namespace.inode, self.ifindex


@dataclass(frozen=True, slots=True)
class Listing:
    """One look at everything. ``unreachable``: namespaces that could not be entered, with one sentence each."""

    monotonic_ns: int
    devices: tuple[Listed, ...] = ()
    unreachable: tuple[tuple[Visible, str], ...] = ()

    def by_key(self) -> dict[Key, Listed]:
        return {device.key: device for device in self.devices}


@dataclass(frozen=True, slots=True)
class Rates:
    """What a device did between two listings, per second."""

    tx_packets: float
    tx_bytes: float
    rx_packets: float
    requeues: float
    drops: float


@dataclass(slots=True)
class _Static:
    """What does not change as long as name and index stay: asked for once a device."""

    name: str
    driver: str | None
    bql: bool | None
    tx_queues: int | None


@dataclass(slots=True)
class Lister:
    """Takes listings; remembers what needs asking only once. For one thread at a time."""

    _static: dict[Key, _Static] = field(default_factory=dict)
    _owners: dict[int, tuple[int | None, str | None]] = field(default_factory=dict)
    _numbers: dict[tuple[int, int], int] = field(default_factory=dict)
    """(inode, number it has for another namespace) -> that one's inode."""

    def list(self) -> Listing:
        """Every device of every namespace that can be seen."""
        found: list[tuple[Listed, Link]] = []
        unreachable = []
        names: dict[str, str] | None = None
        own = netns.current().inode
        for visible in netns.all_visible():
            owner = None
            if visible.namespace.inode != own:
                owner, names = self._owner(visible, names)
            try:
                found += self._namespace(visible.namespace, owner)
            except (netns.NetnsError, OSError) as error:
                unreachable.append((visible, str(error)))
        alive = {device.key for device, _ in found}
        self._static = {key: value for key, value in self._static.items() if key in alive}
        return Listing(time.monotonic_ns(), self._with_peers(found), tuple(unreachable))

    def _owner(self, visible: Visible, names: dict[str, str] | None) -> tuple[str | None, dict[str, str] | None]:
        """Who a namespace belongs to; the containers' names are read when the first unknown one turns up."""
        inode, pid = visible.namespace.inode, visible.pid
        if self._owners.get(inode, (0, None))[0] != pid:
            container = containers.container_of(pid) if pid else None
            if container:
                names = containers.names_by_id() if names is None else names
                label = f"{container[0]} {names.get(container[1], container[1][:12])}"
            else:
                label = f"{visible.process} [{pid}]" if pid else None
            self._owners[inode] = (pid, label)
        return self._owners[inode][1], names

    def _namespace(self, namespace: Namespace, owner: str | None) -> list[tuple[Listed, Link]]:
        with Rtnl(namespace) as rtnl:
            qdiscs = rtnl.all_qdiscs()
            return [(self._listed(rtnl, link, owner, qdiscs.get(link.ifindex, ())), link) for link in rtnl.links(stats=True)]

    def _listed(self, rtnl: Rtnl, link: Link, owner: str | None, qdiscs: Iterable[QdiscSample]) -> Listed:
        fixed = self._fixed(rtnl, link)
        roots = [qdisc for qdisc in qdiscs if qdisc.parent == "root"]
        return Listed(
            name=link.name,
            ifindex=link.ifindex,
            namespace=rtnl.namespace,
            owner=owner,
            driver=fixed.driver,
            kind=link.kind,
            up=link.up,
            oper_state=link.oper_state,
            bql=fixed.bql,
            unit=sysfs.unit_of(fixed.driver) if fixed.bql else None,
            tx_queues=fixed.tx_queues or link.alloc_tx_queues,
            qdisc=link.qdisc,
            stats=link.stats,
            backlog_packets=sum(qdisc.backlog_packets for qdisc in roots),
            backlog_bytes=sum(qdisc.backlog_bytes for qdisc in roots),
            requeues=sum(qdisc.requeues for qdisc in roots),
            drops=sum(qdisc.drops for qdisc in roots),
        )

    def _fixed(self, rtnl: Rtnl, link: Link) -> _Static:
        key = rtnl.namespace.inode, link.ifindex
        known = self._static.get(key)
        if known is None or known.name != link.name:
            folder = rtnl.sysfs
            bql = queues = None
            if folder is not None:
                bql = sysfs.has_bql(folder, link.name)
                queues = sysfs.tx_queue_count(folder, link.name) if link.alloc_tx_queues > 1 else 1
            known = _Static(link.name, ioctls.driver(rtnl.control, link.name), bql, queues)
            self._static[key] = known
        return known

    def _with_peers(self, found: list[tuple[Listed, Link]]) -> tuple[Listed, ...]:
        """Give every device its other end.

        The kernel names it by index and by a number for its namespace that is private to the namespace asked. Numbers
        are dear to resolve (one request a pair of namespaces); a veth's two ends know each other's index, which settles
        it where no other pair has the same two indices.
        """
        here = {device.key: device for device, _ in found}
        ends: dict[tuple[int, int], list[Listed]] = {}
        for device, link in found:
            if link.kind in PAIRS and link.link is not None:
                ends.setdefault((link.ifindex, link.link), []).append(device)
        inodes = {device.namespace.inode for device, _ in found}
        self._numbers = {key: to for key, to in self._numbers.items() if key[0] in inodes and to in inodes}
        complete = []
        for device, link in found:
            if link.link is not None:
                if link.link_netnsid is None:
                    other = here.get((device.namespace.inode, link.link))
                else:
                    candidates = ends.get((link.link, link.ifindex), ()) if link.kind in PAIRS else ()
                    other = self._one_of(candidates, device, link.link_netnsid)
                peer = Peer(link.link, other.name, other.namespace.name) if other else Peer(link.link)
                device = replace(device, peer=peer)
            complete.append(device)
        return tuple(complete)

    def _one_of(self, candidates: Sequence[Listed], device: Listed, nsid: int) -> Listed | None:
        """The candidate in the namespace that the device's own one numbers ``nsid``."""
        candidates = [end for end in candidates if end.namespace.inode != device.namespace.inode]
        if len(candidates) < 2:
            return candidates[0] if candidates else None
        key = device.namespace.inode, nsid
        if key not in self._numbers:
            with contextlib.suppress(netns.NetnsError, OSError), Rtnl(device.namespace) as rtnl:
                for end in candidates:
                    number = rtnl.nsid_of(end.namespace)
                    if number is not None:
                        self._numbers[device.namespace.inode, number] = end.namespace.inode
        return next((end for end in candidates if end.namespace.inode == self._numbers.get(key)), None)


def rates(older: Listing | None, newer: Listing) -> Mapping[Key, Rates]:
    """What each device did between two listings. A device that is new, or whose counters fell, has no rates."""
    if older is None or newer.monotonic_ns <= older.monotonic_ns:
        return {}
    seconds = (newer.monotonic_ns - older.monotonic_ns) / 1e9
    before = older.by_key()
    found = {}
    for now in newer.devices:
        then = before.get(now.key)
        if then is None or then.name != now.name or then.stats is None or now.stats is None:
            continue
        grown = (
            now.stats.tx_packets - then.stats.tx_packets,
            now.stats.tx_bytes - then.stats.tx_bytes,
            now.stats.rx_packets - then.stats.rx_packets,
        )
        if min(grown) >= 0:
            # A qdisc that was replaced counts from 0: nothing is better than a negative rate.
            more = (max(0, now.requeues - then.requeues), max(0, now.drops - then.drops))
            found[now.key] = Rates(*(value / seconds for value in grown + more))
    return found
