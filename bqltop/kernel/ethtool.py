"""ethtool over generic netlink, with the kernel's own sentence when it refuses.

Why not the ioctls: there a field the driver does not have reads as 0 and a refusal has no text. Here an attribute
that is absent from the answer is one the driver does not support. Numbers: include/uapi/linux/ethtool_netlink.h.
A get takes some 10 microseconds. Needs Linux 5.9 (coalesce and rings since 5.7).
"""

from __future__ import annotations

import socket
import struct
from dataclasses import dataclass

from bqltop.kernel import netlink, netns
from bqltop.kernel.nlmsg import NetlinkError, Requests, attr, nest, pairs, text, u32
from bqltop.model import Namespace

_NETLINK_GENERIC = 16
_GENL_ID_CTRL, _CTRL_CMD_GETFAMILY = 16, 3
_CTRL_ATTR_FAMILY_ID, _CTRL_ATTR_FAMILY_NAME, _CTRL_ATTR_MCAST_GROUPS = 1, 2, 7
_GENL_HEADER = struct.Struct("=BBH")
_HEADER_INDEX, _HEADER_NAME = 1, 2
_MSG_STRSET_GET, _MSG_FEATURES_GET, _MSG_FEATURES_SET = 1, 11, 12
_ETH_SS_FEATURES = 4


class EthtoolError(NetlinkError):
    """ethtool's request was refused: ``errno`` and, in ``strerror``, the kernel's own sentence."""


@dataclass(frozen=True)
class Group:
    """One family of settings: its messages, and its fields by ethtool's own words. ``flags`` are u8, the rest u32."""

    get: int
    set: int
    notice: int
    fields: dict[str, int]
    flags: frozenset[str] = frozenset()


COALESCE = Group(
    get=19, set=20, notice=21,
    fields={
        "rx-usecs": 2, "rx-frames": 3, "rx-usecs-irq": 4, "rx-frames-irq": 5,
        "tx-usecs": 6, "tx-frames": 7, "tx-usecs-irq": 8, "tx-frames-irq": 9,
        "stats-block-usecs": 10, "adaptive-rx": 11, "adaptive-tx": 12, "pkt-rate-low": 13,
        "rx-usecs-low": 14, "rx-frames-low": 15, "tx-usecs-low": 16, "tx-frames-low": 17,
        "pkt-rate-high": 18, "rx-usecs-high": 19, "rx-frames-high": 20, "tx-usecs-high": 21,
        "tx-frames-high": 22, "sample-interval": 23, "cqe-mode-tx": 24, "cqe-mode-rx": 25,
    },
    flags=frozenset({"adaptive-rx", "adaptive-tx", "cqe-mode-tx", "cqe-mode-rx"}),
)
RINGS = Group(
    get=15, set=16, notice=17,
    fields={
        "rx-max": 2, "rx-mini-max": 3, "rx-jumbo-max": 4, "tx-max": 5,
        "rx": 6, "rx-mini": 7, "rx-jumbo": 8, "tx": 9,
    },
)  # fmt: skip
CHANNELS = Group(
    get=17, set=18, notice=19,
    fields={
        "rx-max": 2, "tx-max": 3, "other-max": 4, "combined-max": 5,
        "rx": 6, "tx": 7, "other": 8, "combined": 9,
    },
)  # fmt: skip
FEATURES_NOTICE = 13
_NOTICES = {COALESCE.notice: "coalesce", RINGS.notice: "rings", CHANNELS.notice: "channels", FEATURES_NOTICE: "features"}


@dataclass(frozen=True, slots=True)
class Feature:
    """One offload. ``fixed``: the driver does not let it change (NOCHANGE, or not in the changeable set)."""

    active: bool
    wanted: bool
    fixed: bool


class Ethtool:
    """ethtool in one network namespace (None: the one this process is in). Usable from any thread.

    ``device`` is a name, or an interface index, which survives a rename. Every method raises EthtoolError.
    """

    def __init__(self, ns: Namespace | None = None):
        self._ns = ns or netns.current()
        self._socket = Requests(self._ns, _NETLINK_GENERIC)
        try:
            self._family, self._groups = _family(self._socket)
        except BaseException:
            self._socket.close()
            raise
        self._feature_names: list[str] | None = None

    def close(self) -> None:
        self._socket.close()

    def __enter__(self) -> Ethtool:
        return self

    def __exit__(self, *_exc) -> None:
        self.close()

    def get(self, group: Group, device: str | int) -> dict[str, int]:
        """The group's values; a field that is not there is not supported by the driver."""
        names = {number: name for name, number in group.fields.items()}
        answer = self._request(group.get, _header(device))
        return {
            names[kind]: value[0] if names[kind] in group.flags else u32(value)
            for kind, value in pairs(answer)
            if kind in names
        }

    def set(self, group: Group, device: str | int, **values: int) -> None:
        """Change fields of a group, named as in ``fields`` (or with ``_`` for ``-``), in one request."""
        encoded = []
        for word, value in values.items():
            name = word.replace("_", "-")
            encoded.append(attr(group.fields[name], bytes([value]) if name in group.flags else value))
        self._request(group.set, _header(device), *encoded)

    def features(self, device: str | int) -> dict[str, Feature]:
        """Every offload the device has or could have, by the kernel's name (``rx-gro``, ``tx-tcp-segmentation``)."""
        answer = self._request(_MSG_FEATURES_GET, _header(device, flags=1))
        hardware, wanted, active, never = (_bits(dict(pairs(answer)).get(kind, b"")) for kind in (2, 3, 4, 5))
        return {
            name: Feature(active=bool(active >> i & 1), wanted=bool(wanted >> i & 1),
                          fixed=bool(never >> i & 1) or not hardware >> i & 1)
            for i, name in enumerate(self._strings()) if name and (hardware | active | wanted) >> i & 1
        }  # fmt: skip

    def set_features(self, device: str | int, **values: bool) -> None:
        """Want offloads on or off. What the driver makes of it shows in ``features``: a wish is not refused."""
        bits = [
            nest(1, attr(2, name.replace("_", "-")), *([attr(3)] if on else [])) for name, on in values.items()
        ]
        self._request(_MSG_FEATURES_SET, _header(device), nest(3, nest(3, *bits)))

    def may_set(self) -> None:
        """Raise EthtoolError (EPERM) when this process may not change settings in this namespace.

        Asks with a request that names no device, which changes nothing: without CAP_NET_ADMIN in the namespace's
        owner the kernel answers EPERM before it looks at the rest (genl_family_rcv_msg), else it misses the device.
        """
        try:
            self._request(COALESCE.set, b"")
        except EthtoolError as error:
            if error.errno == 1:
                raise

    def monitor(self) -> Monitor:
        """Notices of everybody's changes from now on."""
        return Monitor(netlink.listen(self._ns, (self._groups["monitor"],), _NETLINK_GENERIC))

    def _strings(self) -> list[str]:
        """Names of the feature bits: the kernel's build decides them, so one look is enough."""
        if self._feature_names is None:
            wanted = nest(2, nest(1, attr(1, _ETH_SS_FEATURES)))
            answer = self._request(_MSG_STRSET_GET, nest(1), wanted)
            self._feature_names = _string_set(dict(pairs(answer))[2])
        return self._feature_names

    def _request(self, command: int, *parts: bytes) -> bytes:
        try:
            answer = self._socket.act(self._family, _GENL_HEADER.pack(command, 1, 0) + b"".join(parts))
        except NetlinkError as error:
            raise EthtoolError(error.errno, error.strerror) from None
        return answer[4:] if answer else b""


class Monitor:
    """Somebody changed something: ``drain()`` never blocks."""

    def __init__(self, sock: socket.socket):
        self._socket = sock

    def close(self) -> None:
        self._socket.close()

    def drain(self) -> list[tuple[int, str]]:
        """(interface index, group) of each change since the last call; group is coalesce, rings, channels,
        features, or other. A full socket buffer raises OSError(ENOBUFS): read everything anew then."""
        changes = []
        while True:
            try:
                datagram = self._socket.recv(1 << 16)
            except BlockingIOError:
                return changes
            changes += [_notice(data[start:end]) for _kind, data, start, end in netlink.messages(datagram)]


def _notice(payload: bytes) -> tuple[int, str]:
    """(interface index, group) of a notification; the header is attribute 1 of every one of them."""
    header = dict(pairs(dict(pairs(payload[4:])).get(1, b"")))
    return u32(header.get(_HEADER_INDEX, bytes(4))), _NOTICES.get(payload[0], "other")


def _header(device: str | int, flags: int = 0) -> bytes:
    """ETHTOOL_A_HEADER; flags 1 asks for compact bit sets."""
    which = attr(_HEADER_INDEX, device) if isinstance(device, int) else attr(_HEADER_NAME, device)
    return nest(1, which, *([attr(3, flags)] if flags else []))


def _family(sock: Requests) -> tuple[int, dict[str, int]]:
    """The id of the ethtool family and its multicast groups. Raises EthtoolError where the kernel has none."""
    try:
        request = _GENL_HEADER.pack(_CTRL_CMD_GETFAMILY, 1, 0) + attr(_CTRL_ATTR_FAMILY_NAME, "ethtool")
        answer = dict(pairs(sock.act(_GENL_ID_CTRL, request)[4:]))
    except NetlinkError as error:
        raise EthtoolError(error.errno, f"the kernel has no ethtool netlink ({error.strerror})") from None
    groups = {}
    for _index, group in pairs(answer.get(_CTRL_ATTR_MCAST_GROUPS, b"")):
        parts = dict(pairs(group))
        groups[text(parts[1])] = u32(parts[2])
    return struct.unpack("=H", answer[_CTRL_ATTR_FAMILY_ID])[0], groups


def _bits(bitset: bytes) -> int:
    """A compact bit set's value as an int."""
    value = dict(pairs(bitset)).get(4, b"")
    words = struct.unpack(f"={len(value) // 4}I", value)
    return sum(word << 32 * place for place, word in enumerate(words))


def _string_set(sets: bytes) -> list[str]:
    names = {}
    for _kind, one in pairs(sets):
        for _kind, string in pairs(dict(pairs(one)).get(3, b"")):
            parts = dict(pairs(string))
            names[u32(parts[1])] = text(parts[2])
    return [names.get(i, "") for i in range(max(names, default=-1) + 1)]
