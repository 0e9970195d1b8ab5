"""The two ends that are tuned: the device itself and, of a veth, its peer in whatever namespace that is."""

from __future__ import annotations

import errno

from bqltop.kernel import netns
from bqltop.kernel.rtnl import Rtnl
from bqltop.model import Namespace
from bqltop.presence import no_such_device
from bqltop.tuning.access import Access


def open_ends(device: str, ns: Namespace, access) -> tuple[Access, Access | None, str | None]:
    """Access to the device and to its veth peer, or why the peer is out of reach."""
    with Rtnl(ns) as rtnl:
        found = rtnl.device(device)
        link = rtnl.link(device)
        if found is None or link is None:
            raise OSError(errno.ENODEV, no_such_device(rtnl, device))
        own = access(found.name, ns, found.driver)
        if found.kind != "veth":
            return own, None, None
        where = rtnl.peer_namespace(link)
        if found.peer is None or found.peer.name is None or where is None:
            return own, None, "the peer's namespace cannot be reached from here"
        try:
            return own, access(found.peer.name, where, "veth"), None
        except (OSError, netns.NetnsError) as error:
            return own, None, f"the peer cannot be reached: {error}"


def words(error: Exception) -> str:
    """What an error says, without its number."""
    if isinstance(error, OSError):
        return error.strerror or str(error)
    return str(error.args[0]) if error.args else str(error)
