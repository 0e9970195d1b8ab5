"""Qdisc messages (RTM_NEWQDISC) to QdiscSample: pure parsing, about 4 microseconds a qdisc.

Formats: linux/rtnetlink.h, linux/gen_stats.h, linux/pkt_sched.h. Names of options and statistics are those of
``tc -j -s qdisc``; times in them are microseconds unless the name says otherwise.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import replace

from bqltop.kernel import qdisc_details
from bqltop.kernel.netlink import ATTRIBUTE, ATTRIBUTE_TYPE, Message
from bqltop.model import QdiscSample

RTM_NEWQDISC, RTM_DELQDISC, RTM_GETQDISC = 36, 37, 38
TCA_KIND, TCA_OPTIONS, TCA_STATS2 = 1, 2, 7
TCA_STATS_BASIC, TCA_STATS_QUEUE, TCA_STATS_APP, TCA_STATS_PKT64 = 1, 3, 4, 8
TC_H_ROOT, TC_H_INGRESS = 0xFFFFFFFF, 0xFFFFFFF1

PER_QUEUE_KINDS = frozenset(("mq", "mqprio", "taprio"))
"""Qdiscs whose class with minor number n + 1 is TX queue n (net/sched/sch_mq.c: mq_find, mqprio_find)."""

TCMSG = struct.Struct("=BxxxiIII")
_basic = struct.Struct("=QI")
_queue = struct.Struct("=5I")
_u64 = struct.Struct("=Q")


def request() -> bytes:
    """The payload of a dump request. It asks for everything: the kernel ignores an index in it."""
    return TCMSG.pack(0, 0, 0, 0, 0)


def parse_device(messages: Iterable[Message], ifindex: int) -> tuple[QdiscSample, ...]:
    """The qdiscs of one device, its root first and the children in the order of their parents."""
    unpack = TCMSG.unpack_from
    found = []
    for kind, data, start, end in messages:
        if kind == RTM_NEWQDISC and unpack(data, start)[1] == ifindex:
            _, _, handle, parent, _ = unpack(data, start)
            found.append((parent != TC_H_ROOT, parent, handle, _parse(data, start, end, handle, parent)))
    found.sort(key=lambda entry: entry[:3])
    return _with_queues(found)


def parse_all(messages: Iterable[Message]) -> dict[int, list[QdiscSample]]:
    """Every device's qdiscs by interface index, in the kernel's order."""
    devices: dict[int, list[QdiscSample]] = {}
    for kind, data, start, end in messages:
        if kind == RTM_NEWQDISC:
            _, ifindex, handle, parent, _ = TCMSG.unpack_from(data, start)
            devices.setdefault(ifindex, []).append(_parse(data, start, end, handle, parent))
    return devices


def parse_header(message: Message) -> tuple[int, str, str, str]:
    """(interface index, kind, handle, parent) of a qdisc message: what an event line needs."""
    _, data, start, end = message
    _, ifindex, handle, parent, _ = TCMSG.unpack_from(data, start)
    kind = ""
    for type_, low, high in _walk(data, start + 20, end):
        if type_ == TCA_KIND:
            kind = _kind(data[low:high])
    return ifindex, kind, handle_text(handle), parent_text(parent)


def handle_text(handle: int) -> str:
    """A handle as tc writes it: "8002:"."""
    return f"{handle >> 16:x}:"


def parent_text(parent: int) -> str:
    """A parent as tc writes it: "root", "8001:1", ":1" under an mq that the kernel made by itself."""
    if parent == TC_H_ROOT:
        return "root"
    major, minor = parent >> 16, parent & 0xFFFF
    if not major:
        return f":{minor:x}"
    return f"{major:x}:{minor:x}" if minor else f"{major:x}:"


def _with_queues(found: list) -> tuple[QdiscSample, ...]:
    """Give the children of the device's root their queue numbers."""
    if not found or found[0][0] or found[0][3].kind not in PER_QUEUE_KINDS:
        return tuple(entry[3] for entry in found)
    root = found[0][2] >> 16
    return tuple(
        replace(sample, txq=(parent & 0xFFFF) - 1) if parent >> 16 == root and 0 < parent & 0xFFFF < 0xFFE0 else sample
        for _, parent, _, sample in found
    )


def _parse(data: bytes, start: int, end: int, handle: int, parent: int) -> QdiscSample:
    kind, options, extra = "", b"", b""
    packets = bytes_ = qlen = backlog = drops = requeues = overlimits = 0
    for type_, low, high in _walk(data, start + 20, end):
        if type_ == TCA_KIND:
            kind = _kind(data[low:high])
        elif type_ == TCA_OPTIONS:
            options = data[low:high]
        elif type_ == TCA_STATS2:
            wide = None
            for inner, at, until in _walk(data, low, high):
                if inner == TCA_STATS_BASIC:
                    bytes_, packets = _basic.unpack_from(data, at)
                elif inner == TCA_STATS_QUEUE:
                    qlen, backlog, drops, requeues, overlimits = _queue.unpack_from(data, at)
                elif inner == TCA_STATS_PKT64:
                    (wide,) = _u64.unpack_from(data, at)
                elif inner == TCA_STATS_APP:
                    extra = data[at:until]
            packets = packets if wide is None else wide
    return QdiscSample(
        kind, handle_text(handle), parent_text(parent), packets, bytes_, drops, requeues, overlimits, backlog, qlen,
        None, qdisc_details.statistics(kind, extra), qdisc_details.options(kind, options),
    )  # fmt: skip


def _walk(data: bytes, start: int, end: int) -> list[tuple[int, int, int]]:
    found = []
    unpack = ATTRIBUTE.unpack_from
    while start + 4 <= end:
        length, kind = unpack(data, start)
        if length < 4:
            break
        found.append((kind & ATTRIBUTE_TYPE, start + 4, start + length))
        start += (length + 3) & ~3
    return found


_kinds: dict[bytes, str] = {}


def _kind(raw: bytes) -> str:
    text = _kinds.get(raw)
    if text is None:
        text = _kinds[raw] = raw.rstrip(b"\0").decode(errors="replace")
    return text
