"""Whether a veth uses its ring at all (NAPI mode).

The rule is drivers/net/veth.c: veth_xmit queues into the ring of the receiving end when that has NAPI instances (an
XDP program, or GRO asked for) and the sending end has no TSO; with TSO, still for datagrams of local sockets where
the receiving end forwards UDP or lists aggregates. Otherwise a packet goes straight to the peer's backlog: no ring, no
stop, no BQL.
"""

from __future__ import annotations

import contextlib
import shlex
import socket
from dataclasses import dataclass

from bqltop.kernel import ioctls, netns
from bqltop.kernel.links import Link
from bqltop.kernel.rtnl import Rtnl
from bqltop.model import Namespace

TSO = ("tx-tcp-segmentation", "tx-tcp6-segmentation", "tx-tcp-ecn-segmentation", "tx-tcp-mangleid-segmentation")
"""NETIF_F_ALL_TSO"""
DATAGRAM_GRO = ("rx-gro-list", "rx-udp-gro-forwarding")


@dataclass(frozen=True, slots=True)
class NapiMode:
    """``in_force``: whether packets go through the ring; None where it cannot be told. ``reason``: one sentence.
    ``commands``: what to type to switch it on, none when it is on."""

    in_force: bool | None
    reason: str
    commands: tuple[str, ...] = ()


def judge(sender_tso: bool, peer_gro: bool, peer_xdp: bool, peer_datagram_gro: bool) -> tuple[bool, str]:
    """The rule itself: (in force, reason)."""
    if not (peer_gro or peer_xdp):
        why = "the peer has GRO off and no XDP program"
        return False, f"no ring in use: {why}" + (", and TSO is on here" if sender_tso else "")
    with_ = "an XDP program" if peer_xdp else "GRO on"
    if not sender_tso:
        return True, f"the ring is in use: the peer has {with_}, TSO is off here"
    if peer_datagram_gro:
        return True, f"the ring is in use for datagrams of local sockets only: the peer has {with_}, but TSO is on here"
    return False, f"no ring in use: the peer has {with_}, but TSO is on here"


def napi_mode(rtnl: Rtnl, link: Link) -> NapiMode | None:
    """Whether the veth ``link`` sends through a ring; None for another kind of device. 0.1 ms, 2 ms more the first
    time for a peer in another namespace."""
    if link.kind != "veth":
        return None
    peer, where = rtnl.peer_link(link), rtnl.peer_namespace(link)
    if peer is None or where is None:
        return NapiMode(None, "whether the ring is in use cannot be told: the peer's namespace is out of reach",
                        commands(rtnl.namespace, link.name, None, "PEER"))  # fmt: skip
    try:
        here = ioctls.features(rtnl.control, link.name)
        there = _features_in(where, rtnl, peer.name)
    except (OSError, netns.NetnsError):
        return NapiMode(None, "whether the ring is in use cannot be told: the offloads could not be read")

    def any_active(features: dict[str, ioctls.Feature], names: tuple[str, ...]) -> bool:
        return any(features[name].active for name in names if name in features)

    gro = there.get("rx-gro")
    in_force, reason = judge(any_active(here, TSO), bool(gro and gro.wanted), peer.xdp, any_active(there, DATAGRAM_GRO))
    return NapiMode(in_force, reason, () if in_force else commands(rtnl.namespace, link.name, where, peer.name))


def _features_in(where: Namespace, rtnl: Rtnl, name: str) -> dict[str, ioctls.Feature]:
    if where.inode == rtnl.namespace.inode:
        return ioctls.features(rtnl.control, name)
    with contextlib.closing(netns.socket_in(where, socket.AF_INET, socket.SOCK_DGRAM)) as control:
        return ioctls.features(control, name)


def commands(here: Namespace, name: str, there: Namespace | None, peer: str) -> tuple[str, str]:
    """The two commands that switch NAPI mode on, as a shell takes them."""
    return (
        f"{_inside(here)}ethtool -K {shlex.quote(name)} tso off",
        f"{_inside(there)}ethtool -K {shlex.quote(peer)} gro on",
    )


def _inside(namespace: Namespace | None) -> str:
    """What to put before a command that must run in the namespace."""
    if namespace is None or namespace.name is None:
        return ""
    if namespace.path == f"{netns.RUN_NETNS}/{namespace.name}":
        return f"ip netns exec {shlex.quote(namespace.name)} "
    return f"nsenter --net={shlex.quote(namespace.path)} "
