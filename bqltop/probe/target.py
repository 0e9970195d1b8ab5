"""Whom to probe when nobody was named: the other end of a veth pair."""

from __future__ import annotations

from collections.abc import Sequence

from bqltop.kernel.addresses import Interface, addresses
from bqltop.kernel.rtnl import Rtnl
from bqltop.model import Namespace
from bqltop.probe.prober import ProbeError

PEER = "peer"
"""The word that stands for the other end's address."""


def resolve_address(word: str, namespace: Namespace, device: str) -> str:
    """The address to probe: ``word`` itself, or the peer's address for the word "peer". Raises ProbeError."""
    return peer_address(namespace, device) if word == PEER else word


def peer_address(namespace: Namespace, device: str) -> str:
    """An address of the veth peer that the device can reach directly. Raises ProbeError where there is none."""
    with Rtnl(namespace) as rtnl:
        link = rtnl.link(device)
        if link is None or link.kind != "veth" or link.link is None:
            raise ProbeError(f"{device} has no peer to probe: name an address")
        where = rtnl.peer_namespace(link)
    if where is None:
        raise ProbeError(f"the namespace of {device}'s peer is out of reach: name an address")
    found = choose(addresses(namespace, link.ifindex), addresses(where, link.link))
    if found is None:
        raise ProbeError(f"the peer of {device} has no address in the same network: name one")
    return found


def choose(ours: Sequence[Interface], theirs: Sequence[Interface]) -> str | None:
    """Their first address in one of our networks, IPv4 before IPv6. Pure."""
    reachable = [other for other in theirs if any(_same_network(own, other) for own in ours)]
    reachable.sort(key=lambda interface: interface.version)
    return str(reachable[0].ip) if reachable else None


def _same_network(own: Interface, other: Interface) -> bool:
    return own.version == other.version and other.ip in own.network and other.ip != own.ip
