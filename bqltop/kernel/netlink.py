"""A netlink socket and the two shapes everything on it has: messages and attributes.

Blocking, without an event loop of any kind, so that the sampler's thread and a Textual handler may use it alike.
Formats: linux/netlink.h, Documentation/userspace-api/netlink.
"""

from __future__ import annotations

import errno
import os
import socket
import struct
import threading
from collections.abc import Iterator

from bqltop.kernel import netns
from bqltop.model import Namespace

NLMSG_ERROR, NLMSG_DONE = 2, 3
NLM_F_REQUEST, NLM_F_ACK, NLM_F_DUMP_INTR, NLM_F_DUMP = 0x1, 0x4, 0x10, 0x300
NLM_F_CAPPED, NLM_F_ACK_TLVS = 0x100, 0x200
NLMSGERR_ATTR_MSG = 1
SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, NETLINK_EXT_ACK = 270, 1, 11
ATTRIBUTE_TYPE = 0x3FFF
"""NLA_TYPE_MASK: the two top bits say nested and byte order."""

HEADER = struct.Struct("=IHHII")
ATTRIBUTE = struct.Struct("=HH")

Message = tuple[int, bytes, int, int]
"""(type, buffer, start, end): the payload is buffer[start:end], not copied."""


class Netlink:
    """One netlink socket of one namespace. Requests of several threads wait for each other."""

    def __init__(self, namespace: Namespace, protocol: int = socket.NETLINK_ROUTE, sock: socket.socket | None = None):
        """``sock``: one already made in the namespace, which is closed with this object."""
        self._socket = sock or netns.socket_in(namespace, socket.AF_NETLINK, socket.SOCK_RAW, protocol)
        self._socket.setsockopt(SOL_NETLINK, NETLINK_EXT_ACK, 1)
        self._socket.bind((0, 0))
        self._socket.settimeout(5)
        self._lock = threading.Lock()
        self._sequence = 0

    def close(self) -> None:
        self._socket.close()

    def ask(self, kind: int, payload: bytes) -> Message | None:
        """One request with one answer; None where the kernel answered with a bare acknowledgement. Raises OSError
        with the kernel's own sentence where it gave one."""
        with self._lock:
            return next(iter(self._exchange(kind, NLM_F_REQUEST, payload)), None)

    def dump(self, kind: int, payload: bytes) -> list[Message]:
        """Every message of a dump; taken anew when the kernel says that it changed meanwhile. Raises OSError."""
        with self._lock:
            for attempt in range(4):
                try:
                    return self._exchange(kind, NLM_F_REQUEST | NLM_F_DUMP, payload)
                except InterruptedDump:
                    continue
                except OSError as error:
                    if error.errno not in (errno.EBUSY, errno.ENOBUFS) or attempt == 3:
                        raise
            return self._exchange(kind, NLM_F_REQUEST | NLM_F_DUMP, payload, tolerant=True)

    def _exchange(self, kind: int, flags: int, payload: bytes, tolerant: bool = False) -> list[Message]:
        self._sequence = sequence = (self._sequence + 1) & 0xFFFFFFFF
        self._socket.send(HEADER.pack(16 + len(payload), kind, flags, sequence, 0) + payload)
        found: list[Message] = []
        interrupted = False
        dumping = flags & NLM_F_DUMP
        receive, unpack = self._socket.recv, HEADER.unpack_from
        while True:
            data = receive(65536)
            offset, end = 0, len(data)
            while offset + 16 <= end:
                length, type_, flags_, number, _ = unpack(data, offset)
                if number == sequence:
                    if type_ == NLMSG_ERROR:
                        raise_error(data, offset, offset + length, flags_)
                        return found
                    if type_ == NLMSG_DONE:
                        if interrupted and not tolerant:
                            raise InterruptedDump
                        return found
                    if flags_ & NLM_F_DUMP_INTR:
                        interrupted = True
                    found.append((type_, data, offset + 16, offset + length))
                offset += (length + 3) & ~3
            if found and not dumping:
                return found


class InterruptedDump(Exception):
    """The kernel's table changed during the dump."""


def listen(namespace: Namespace, groups: tuple[int, ...], protocol: int = socket.NETLINK_ROUTE) -> socket.socket:
    """A non-blocking socket that hears the multicast groups; the caller closes it."""
    listener = netns.socket_in(namespace, socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_NONBLOCK, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        listener.bind((0, 0))
        for group in groups:
            listener.setsockopt(SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, group)
    except BaseException:
        listener.close()
        raise
    return listener


def messages(data: bytes) -> Iterator[Message]:
    """The messages of one datagram."""
    offset, end = 0, len(data)
    while offset + 16 <= end:
        length, kind, _, _, _ = HEADER.unpack_from(data, offset)
        if length < 16:
            return
        yield kind, data, offset + 16, offset + length
        offset += (length + 3) & ~3


def attributes(data: bytes, start: int, end: int) -> dict[int, tuple[int, int]]:
    """Attribute type -> (start, end) of its payload in ``data``. Of repeated ones the last is kept."""
    found = {}
    unpack = ATTRIBUTE.unpack_from
    while start + 4 <= end:
        length, kind = unpack(data, start)
        if length < 4:
            break
        found[kind & ATTRIBUTE_TYPE] = (start + 4, start + length)
        start += (length + 3) & ~3
    return found


def attribute(kind: int, payload: bytes) -> bytes:
    """One attribute ready to send."""
    return ATTRIBUTE.pack(4 + len(payload), kind) + payload + bytes(-len(payload) % 4)


def raise_error(data: bytes, start: int, end: int, flags: int) -> None:
    """Raise the OSError an NLMSG_ERROR message carries, in the kernel's own words where it has some; 0 is an ack."""
    number = -struct.unpack_from("=i", data, start + 16)[0]
    if number == 0:
        return
    text = os.strerror(number)
    if flags & NLM_F_ACK_TLVS:
        echoed = 16 if flags & NLM_F_CAPPED else struct.unpack_from("=I", data, start + 20)[0]
        found = attributes(data, start + 20 + ((echoed + 3) & ~3), end)
        if NLMSGERR_ATTR_MSG in found:
            low, high = found[NLMSGERR_ATTR_MSG]
            text = data[low:high].rstrip(b"\0").decode(errors="replace")
    raise OSError(number, text)
