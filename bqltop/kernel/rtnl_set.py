"""Two settings that are rtnetlink's: the queue length of a link, and its root qdisc, with the way back.

Numbers: include/uapi/linux/{rtnetlink,if_link,pkt_sched}.h. Everything goes by interface index, never by name, so a
device renamed in between is still the right one. All functions raise NetlinkError with the kernel's sentence.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from bqltop.kernel.nlmsg import NLM_F_CREATE, NLM_F_REPLACE, Requests, attr, nest, pairs, text, u32

_RTM_SETLINK, _RTM_NEWQDISC, _RTM_DELQDISC, _RTM_GETQDISC, _RTM_GETTFILTER = 19, 36, 37, 38, 46
_IFINFO, _TC = struct.Struct("=BxHiII"), struct.Struct("=BxxxiIII")
_IFLA_TXQLEN = 13
_TCA_KIND, _TCA_OPTIONS = 1, 2
_TC_H_ROOT, _TC_H_INGRESS = 0xFFFFFFFF, 0xFFFFFFF1

FIFO = {"limit": 0}
SFQ = {"quantum": 0, "perturb": 4, "limit": 8}
"""Without flows: the kernel shows 128 there and makes 127 of it when told so (sfq_change clamps it to the limit)."""
FQ_CODEL = {
    "limit": 2, "target": 1, "interval": 3, "ecn": 4, "flows": 5, "quantum": 6, "ce_threshold": 7, "memory_limit": 9,
}  # fmt: skip
CODEL = {"limit": 2, "target": 1, "interval": 3, "ecn": 4}
FQ = {"limit": 1, "flow_limit": 2, "quantum": 3, "initial_quantum": 4, "maxrate": 7}
PIE = {"limit": 2, "target": 1, "tupdate": 3, "ecn": 6}

STRUCTS: dict[str, dict[str, int]] = {"pfifo": FIFO, "bfifo": FIFO, "sfq": SFQ}
"""Kinds whose options are a C struct: parameter -> byte offset of its 32-bit field."""
NESTS: dict[str, dict[str, int]] = {"fq_codel": FQ_CODEL, "codel": CODEL, "fq": FQ, "pie": PIE}
"""Kinds whose options are attributes: parameter -> attribute number, each a u32."""
PLAIN = frozenset({"noqueue", "pfifo_fast", "mq"})
"""Kinds without parameters."""
RECREATED = frozenset({"sfq"})
"""Kinds the kernel cannot change in place (no ``change`` in their Qdisc_ops): another of the kind replaces them."""
_OWN_HANDLES = (0x7B510000, 0x7B520000)
_CODEL_TIMES = {("fq_codel", 1), ("fq_codel", 3), ("fq_codel", 7), ("codel", 1), ("codel", 3)}
_PIE_TIMES = {("pie", 1), ("pie", 3)}
_STRUCT_BYTES = {"pfifo": 4, "bfifo": 4, "sfq": 20}


@dataclass(frozen=True, slots=True)
class RootQdisc:
    """The root qdisc of a device, with what it takes to put it back.

    ``parameters`` are those of STRUCTS/NESTS, in the kernel's units (times in microseconds). ``options`` is the
    kernel's own TCA_OPTIONS, sent back unchanged on restore. ``handle`` 0: the kernel chose it by itself, and will
    again when whatever stands there is deleted. ``stuck`` says why it could not be put back; then it must stay.
    """

    kind: str
    handle: int
    options: bytes
    parameters: dict[str, int]
    stuck: str | None = None


def set_txqueuelen(requests: Requests, ifindex: int, packets: int) -> None:
    """``ip link set dev X txqueuelen N``"""
    requests.act(_RTM_SETLINK, _IFINFO.pack(0, 0, ifindex, 0, 0) + attr(_IFLA_TXQLEN, packets))


def root_qdisc(requests: Requests, ifindex: int) -> RootQdisc | None:
    """The root qdisc, None while the device is down and has none."""
    root, children = None, []
    for _kind, data, start, end in requests.dump(_RTM_GETQDISC, _TC.pack(0, ifindex, 0, 0, 0)):
        _family, index, handle, parent, _info = _TC.unpack_from(data, start)
        if index != ifindex or parent == _TC_H_INGRESS:
            continue
        found = dict(pairs(data[start + _TC.size : end]))
        if parent == _TC_H_ROOT:
            root = (text(found[_TCA_KIND]), handle, found.get(_TCA_OPTIONS, b""))
        else:
            children.append(handle)
    if root is None:
        return None
    kind, handle, options = root
    return RootQdisc(kind, handle, options, _parameters(kind, options), _stuck(requests, ifindex, kind, children))


def replace_root(requests: Requests, ifindex: int, kind: str, parameters: dict[str, int]) -> None:
    """``tc qdisc replace dev X root KIND PARAMETERS``: parameters not named are the kind's own defaults, or stay as
    they are where one of this kind is the root already.

    Raises ValueError for a parameter this kind does not have here.
    """
    now = root_qdisc(requests, ifindex) if kind in RECREATED else None
    handle = other_handle(now.handle) if now is not None and now.kind == kind else 0
    _replace(requests, ifindex, handle, kind, _encode(kind, parameters, b""))


def change_root(requests: Requests, ifindex: int, parameters: dict[str, int]) -> None:
    """Change parameters of the root qdisc that is there, in place (a qdisc of the kernel's choosing is replaced by
    one of the same kind, as tc does it). Raises ValueError as replace_root."""
    now = root_qdisc(requests, ifindex)
    if now is None:
        raise ValueError("there is no root qdisc while the device is down")
    handle = other_handle(now.handle) if now.kind in RECREATED else now.handle
    _replace(requests, ifindex, handle, now.kind, _encode(now.kind, parameters, now.options))


def other_handle(handle: int) -> int:
    """A handle to make a qdisc under that is to replace one of its own kind: with the same handle, or none, the
    kernel would try to change the one that is there (tc_modify_qdisc). Outside of what it hands out itself (8000:)."""
    return _OWN_HANDLES[handle == _OWN_HANDLES[0]]


def restore_root(requests: Requests, ifindex: int, old: RootQdisc) -> None:
    """Put back what root_qdisc saw."""
    now = root_qdisc(requests, ifindex)
    if old.handle == 0:
        if now is not None and now.handle != 0:
            requests.act(_RTM_DELQDISC, _TC.pack(0, ifindex, 0, _TC_H_ROOT, 0))
        return
    options = old.options
    if now is not None and now.kind == old.kind and now.handle == old.handle and old.kind in NESTS:
        # in place, only what differs: some parameters (fq_codel's flows) are refused even when they stay the same
        present = set(pairs(now.options))
        options = b"".join(attr(kind, value) for kind, value in pairs(old.options) if (kind, value) not in present)
    if old.kind in NESTS:
        options = b"".join(attr(kind, _as_it_was(old.kind, kind, value)) for kind, value in pairs(options))
    _replace(requests, ifindex, old.handle, old.kind, options)


def _as_it_was(kind: str, number: int, value: bytes) -> bytes:
    """A parameter as it must be sent so that the kernel keeps what it has shown.

    Times are kept in coarser units and rounded down twice, on the way in and on the way out: sent back as shown they
    would shrink by a microsecond each time. codel counts in 1024 ns (codel_time_t), pie in ticks of 64 ns (psched).
    """
    if (kind, number) in _CODEL_TIMES or ((kind, number) in _PIE_TIMES and u32(value) * 1000 % 64):
        return struct.pack("=I", min(u32(value) + 1, 0xFFFFFFFF))
    return value


def _replace(requests: Requests, ifindex: int, handle: int, kind: str, options: bytes) -> None:
    body = attr(_TCA_KIND, kind) + (nest(_TCA_OPTIONS, options) if kind in NESTS else attr(_TCA_OPTIONS, options))
    if not options:
        body = attr(_TCA_KIND, kind)
    message = _TC.pack(0, ifindex, handle, _TC_H_ROOT, 0) + body
    requests.act(_RTM_NEWQDISC, message, NLM_F_CREATE | NLM_F_REPLACE)


def _parameters(kind: str, options: bytes) -> dict[str, int]:
    if kind in STRUCTS:
        return {n: struct.unpack_from("=I", options, at)[0] for n, at in STRUCTS[kind].items() if at + 4 <= len(options)}
    found = dict(pairs(options)) if kind in NESTS else {}
    return {name: u32(found[number]) for name, number in NESTS.get(kind, {}).items() if number in found}


def _encode(kind: str, parameters: dict[str, int], now: bytes) -> bytes:
    unknown = parameters.keys() - (STRUCTS.get(kind) or NESTS.get(kind) or {}).keys()
    if unknown:
        raise ValueError(f"qdisc {kind} has no parameter {sorted(unknown)[0]} here")
    if not parameters:
        return b""
    if kind in NESTS:
        return b"".join(attr(NESTS[kind][name], value) for name, value in parameters.items())
    body = bytearray(now or bytes(_STRUCT_BYTES[kind]))
    for name, value in parameters.items():
        struct.pack_into("=I", body, STRUCTS[kind][name], value)
    return bytes(body)


def _stuck(requests: Requests, ifindex: int, kind: str, children: list[int]) -> str | None:
    """Why this root qdisc could not be put back once it is gone, or None."""
    if kind not in PLAIN and kind not in STRUCTS and kind not in NESTS:
        return f"a {kind} qdisc may have classes of its own, which could not be put back"
    if any(children):
        return "its child qdiscs were set by hand and could not be put back"
    if kind not in PLAIN and requests.dump(_RTM_GETTFILTER, _TC.pack(0, ifindex, 0, 0, 0)):
        return "it has filters, which could not be put back"
    return None
