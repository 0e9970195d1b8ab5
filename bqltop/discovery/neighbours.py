"""What a device is connected to: its peer, the bridge or bond it is a port of, its ports, its lower and upper devices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bqltop.discovery.devices import PAIRS
from bqltop.kernel.links import Link
from bqltop.kernel.rtnl import Rtnl
from bqltop.model import Namespace


@dataclass(frozen=True, slots=True)
class Neighbour:
    """One connection. ``relation``: peer, lower, upper, master (of kind ``kind``: bridge, bond, ...) or port.
    ``name`` and ``namespace`` are None where we cannot look."""

    relation: str
    ifindex: int
    name: str | None
    namespace: Namespace | None
    kind: str | None = None


def neighbours(rtnl: Rtnl, ifindex: int) -> list[Neighbour]:
    """A device's neighbours, the peer or lower device first; 20 microseconds for each device of the namespace."""
    links = rtnl.links()
    own = next((link for link in links if link.ifindex == ifindex), None)
    if own is None:
        return []
    return _other_end(rtnl, own) + local(links, own, rtnl.namespace)


def _other_end(rtnl: Rtnl, own: Link) -> list[Neighbour]:
    """Where IFLA_LINK leads, in whichever namespace that is."""
    if own.link is None:
        return []
    other, where = rtnl.peer_link(own), rtnl.peer_namespace(own)
    relation = "peer" if own.kind in PAIRS else "lower"
    return [Neighbour(relation, own.link, other.name if other else None, where, other.kind if other else None)]


def local(links: Sequence[Link], own: Link, namespace: Namespace) -> list[Neighbour]:
    """The neighbours in the device's own namespace, from its links. Pure."""
    found = []
    for link in links:
        if link.ifindex == own.master:
            found.append(Neighbour("master", link.ifindex, link.name, namespace, link.kind))
        elif link.master == own.ifindex:
            found.append(Neighbour("port", link.ifindex, link.name, namespace, link.kind))
        elif link.link == own.ifindex and link.link_netnsid is None and link.ifindex != own.link:
            found.append(Neighbour("upper", link.ifindex, link.name, namespace, link.kind))
    return found
