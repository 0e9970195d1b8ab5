"""The few old ethtool ioctls that are the shortest way to an answer: driver name and feature flags.

They work on any socket of the device's namespace and need no privilege. Formats: linux/ethtool.h.
"""

from __future__ import annotations

import array
import fcntl
import os
import socket
import struct
from dataclasses import dataclass

SIOCETHTOOL = 0x8946
ETHTOOL_GDRVINFO, ETHTOOL_GSTRINGS, ETHTOOL_GSSET_INFO, ETHTOOL_GFEATURES = 0x03, 0x1B, 0x37, 0x3A
ETH_SS_FEATURES = 4
ETH_GSTRING_LEN = 32


@dataclass(frozen=True, slots=True)
class Feature:
    """One offload: in force now, asked for (it comes into force when nothing forbids it), and changeable at all."""

    active: bool
    wanted: bool
    changeable: bool


def driver(sock: socket.socket, device: str) -> str | None:
    """The driver's name as ``ethtool -i`` shows it; None where the device has none or is not there."""
    buffer = array.array("B", bytes(196))
    struct.pack_into("=I", buffer, 0, ETHTOOL_GDRVINFO)
    try:
        _ethtool(sock, device, buffer)
    except OSError:
        return None
    name = buffer[4:36].tobytes().split(b"\0", 1)[0]
    return os.fsdecode(name) or None


def features(sock: socket.socket, device: str) -> dict[str, Feature]:
    """All offloads by the kernel's names (``ethtool -k`` without its old aliases). Raises OSError."""
    names = _feature_names(sock, device)
    blocks = (len(names) + 31) // 32
    buffer = array.array("B", bytes(8 + 16 * blocks))
    struct.pack_into("=II", buffer, 0, ETHTOOL_GFEATURES, blocks)
    _ethtool(sock, device, buffer)
    found = {}
    for number, name in enumerate(names):
        block, bit = divmod(number, 32)
        available, requested, active, never = struct.unpack_from("=4I", buffer, 8 + 16 * block)
        mask = 1 << bit
        found[name] = Feature(bool(active & mask), bool(requested & mask), bool(available & mask & ~never))
    found.pop("", None)
    return found


_known_names: list[str] = []


def _feature_names(sock: socket.socket, device: str) -> list[str]:
    """The kernel's list of feature names: the same for every device, so asked for once."""
    if not _known_names:
        head = array.array("B", struct.pack("=IIQI", ETHTOOL_GSSET_INFO, 0, 1 << ETH_SS_FEATURES, 0))
        _ethtool(sock, device, head)
        count = struct.unpack_from("=I", head, 16)[0]
        buffer = array.array("B", bytes(12 + ETH_GSTRING_LEN * count))
        struct.pack_into("=III", buffer, 0, ETHTOOL_GSTRINGS, ETH_SS_FEATURES, count)
        _ethtool(sock, device, buffer)
        raw = buffer[12:].tobytes()
        _known_names.extend(
            raw[at : at + ETH_GSTRING_LEN].split(b"\0", 1)[0].decode() for at in range(0, len(raw), ETH_GSTRING_LEN)
        )
    return _known_names


def _ethtool(sock: socket.socket, device: str, buffer: array.array) -> None:
    """struct ifreq: 16 bytes of name, then a pointer to the request."""
    raw = os.fsencode(device)
    if len(raw) > 15:
        raise OSError(19, "no such device")
    address, _ = buffer.buffer_info()
    fcntl.ioctl(sock, SIOCETHTOOL, struct.pack("16sP", raw, address) + bytes(16))
