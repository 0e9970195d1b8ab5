"""ICMP echo messages and the timestamps the kernel hands back with them. Pure: bytes in, numbers out.

RFC 792, RFC 4443; Documentation/networking/timestamping.rst.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterable
from dataclasses import dataclass

SO_TIMESTAMPING = 37
"""Option and control message alike (asm-generic/socket.h)."""
TX_SOFTWARE, RX_SOFTWARE, SOFTWARE, OPT_ID, TX_SCHED, OPT_TSONLY = 1 << 1, 1 << 3, 1 << 4, 1 << 7, 1 << 8, 1 << 11
"""SOF_TIMESTAMPING_* (linux/net_tstamp.h): the packet handed to the driver, the reply received, timestamps of the
system's clock, a number on each, the packet handed to the qdisc, no copy of the packet."""
FLAGS = TX_SOFTWARE | RX_SOFTWARE | SOFTWARE | OPT_ID | TX_SCHED | OPT_TSONLY

SCM_TSTAMP_SND, SCM_TSTAMP_SCHED = 0, 1
SO_EE_ORIGIN_TIMESTAMPING = 4
IP_RECVERR, IPV6_RECVERR = 11, 25
_ERROR = struct.Struct("=IBBBBII")
"""struct sock_extended_err (linux/errqueue.h)."""
_TIMESPEC = struct.Struct("=qq")

_HEADER = struct.Struct("!BBHHH")
_PAYLOAD = 40
REQUEST = {socket.AF_INET: 8, socket.AF_INET6: 128}
REPLY = {socket.AF_INET: 0, socket.AF_INET6: 129}


@dataclass(frozen=True, slots=True)
class Sent:
    """What the kernel says of a request that went out: the ``number`` of the request on this socket, and when it was
    handed to the qdisc (``scheduled``) or to the driver. CLOCK_REALTIME ns."""

    number: int
    time_ns: int
    scheduled: bool


def request(family: int, identifier: int, sequence: int, token: bytes) -> bytes:
    """An echo request; ``token`` (8 bytes) comes back in the reply and tells ours from anybody's. The kernel fills in
    the checksum of ICMPv6, which covers addresses only it knows."""
    payload = token + bytes(_PAYLOAD - len(token))
    head = _HEADER.pack(REQUEST[family], 0, 0, identifier, sequence)
    sum_ = checksum(head + payload) if family == socket.AF_INET else 0
    return _HEADER.pack(REQUEST[family], 0, sum_, identifier, sequence) + payload


def reply_sequence(family: int, packet: bytes, identifier: int, token: bytes) -> int | None:
    """The sequence number if the packet is a reply to one of our requests. A raw IPv4 socket hands over the IP header
    too, an IPv6 one does not."""
    start = (packet[0] & 15) * 4 if family == socket.AF_INET and packet else 0
    if len(packet) < start + _HEADER.size + len(token):
        return None
    kind, _, _, id_, sequence = _HEADER.unpack_from(packet, start)
    body = packet[start + _HEADER.size :]
    return sequence if kind == REPLY[family] and id_ == identifier and body.startswith(token) else None


def checksum(data: bytes) -> int:
    """RFC 1071."""
    data += bytes(len(data) % 2)
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


Ancillary = Iterable[tuple[int, int, bytes]]


def received_at(ancillary: Ancillary) -> int | None:
    """When the kernel received the packet (CLOCK_REALTIME ns), None where it does not say."""
    for level, kind, data in ancillary:
        if level == socket.SOL_SOCKET and kind == SO_TIMESTAMPING and len(data) >= _TIMESPEC.size:
            return _nanoseconds(data)
    return None


def sent_at(ancillary: Ancillary) -> Sent | None:
    """A message of the error queue: when a request passed a point on its way out; None for any other message."""
    time_ns, error = None, None
    for level, kind, data in ancillary:
        if level == socket.SOL_SOCKET and kind == SO_TIMESTAMPING:
            time_ns = _nanoseconds(data)
        elif (level, kind) in ((socket.IPPROTO_IP, IP_RECVERR), (socket.IPPROTO_IPV6, IPV6_RECVERR)):
            error = _ERROR.unpack_from(data)
    if time_ns is None or error is None or error[1] != SO_EE_ORIGIN_TIMESTAMPING:
        return None
    _, _, _, _, _, info, number = error
    return Sent(number, time_ns, scheduled=info == SCM_TSTAMP_SCHED) if info in (0, 1) else None


def _nanoseconds(data: bytes) -> int:
    seconds, nanoseconds = _TIMESPEC.unpack_from(data)
    return seconds * 1_000_000_000 + nanoseconds
