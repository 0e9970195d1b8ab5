"""The IP addresses of a device, over rtnetlink (RTM_GETADDR; include/uapi/linux/if_addr.h)."""

from __future__ import annotations

import ipaddress
import struct

from bqltop.kernel import netlink
from bqltop.model import Namespace

RTM_GETADDR = 22
IFA_ADDRESS, IFA_LOCAL = 1, 2
_IFADDRMSG = struct.Struct("=BBBBI")

Interface = ipaddress.IPv4Interface | ipaddress.IPv6Interface


def addresses(namespace: Namespace, ifindex: int) -> list[Interface]:
    """The addresses of one device with their prefixes, in the kernel's order. Raises NetnsError, OSError."""
    connection = netlink.Netlink(namespace)
    try:
        messages = connection.dump(RTM_GETADDR, _IFADDRMSG.pack(0, 0, 0, 0, 0))
    finally:
        connection.close()
    return [found for message in messages if (found := _parse(message, ifindex))]


def _parse(message: netlink.Message, ifindex: int) -> Interface | None:
    _, data, start, end = message
    _, prefix, _, _, index = _IFADDRMSG.unpack_from(data, start)
    if index != ifindex:
        return None
    found = netlink.attributes(data, start + _IFADDRMSG.size, end)
    # On a point-to-point link IFA_ADDRESS is the other end's, IFA_LOCAL ours; IPv6 has only IFA_ADDRESS otherwise.
    low, high = found.get(IFA_LOCAL) or found[IFA_ADDRESS]
    return ipaddress.ip_interface((data[low:high], prefix))
