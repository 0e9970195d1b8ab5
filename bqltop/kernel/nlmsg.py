"""What writing over netlink needs beyond reading: acknowledged requests, attributes made and walked.

On top of kernel/netlink.py. Layouts: include/uapi/linux/netlink.h.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator

from bqltop.kernel.netlink import ATTRIBUTE, ATTRIBUTE_TYPE, NLM_F_ACK, NLM_F_REQUEST, Netlink, attribute

NLM_F_REPLACE, NLM_F_CREATE = 0x100, 0x400
NLA_F_NESTED = 0x8000


class NetlinkError(OSError):
    """The kernel refused. ``errno`` and, in ``strerror``, its own sentence (extended ACK) or the errno's text."""


class Requests(Netlink):
    """A netlink socket whose requests are acknowledged: what the kernel refuses, it refuses in words."""

    def act(self, kind: int, payload: bytes, flags: int = 0) -> bytes | None:
        """One request; the payload of its answer, None when there was only the acknowledgement.

        Raises NetlinkError with the kernel's sentence.
        """
        try:
            with self._lock:
                found = self._exchange(kind, NLM_F_REQUEST | NLM_F_ACK | flags, payload)
        except OSError as error:
            raise NetlinkError(error.errno, error.strerror) from None
        if not found:
            return None
        _kind, data, start, end = found[0]
        return data[start:end]


def attr(kind: int, payload: bytes | str | int = b"") -> bytes:
    """One attribute. An int is a u32, a string is zero terminated, nothing is a flag."""
    if isinstance(payload, int):
        payload = struct.pack("=I", payload)
    elif isinstance(payload, str):
        payload = os.fsencode(payload) + b"\0"
    return attribute(kind, payload)


def nest(kind: int, *attributes: bytes) -> bytes:
    """An attribute that holds attributes."""
    return attribute(kind | NLA_F_NESTED, b"".join(attributes))


def pairs(buffer: bytes) -> Iterator[tuple[int, bytes]]:
    """The (type, payload) pairs of a buffer in order, repeated ones included; a torn tail ends the walk."""
    offset = 0
    while offset + 4 <= len(buffer):
        length, kind = ATTRIBUTE.unpack_from(buffer, offset)
        if length < 4:
            return
        yield kind & ATTRIBUTE_TYPE, buffer[offset + 4 : offset + length]
        offset += (length + 3) & ~3


def u32(payload: bytes) -> int:
    return struct.unpack_from("=I", payload)[0]


def text(payload: bytes) -> str:
    """A name of the kernel: bytes of any encoding, as Python's file names have them."""
    return os.fsdecode(payload.split(b"\0", 1)[0])
