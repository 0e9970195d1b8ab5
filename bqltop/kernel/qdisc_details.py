"""The options and statistics that each kind of qdisc has of its own, by the names ``tc -j -s qdisc`` gives them.

The well-known kinds are decoded here; pyroute2 decodes the options of the others. Formats: linux/pkt_sched.h. Times
are microseconds, sizes bytes, rates bytes per second, unless the name says otherwise.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from functools import lru_cache

from bqltop.kernel.netlink import attributes

Values = dict[str, "int | str"]

_fq_codel = struct.Struct("=10I")
_codel = struct.Struct("=4Ii4I")
_red = struct.Struct("=4I")
_pie = struct.Struct("=Q8I")
_fq = struct.Struct("=7Qq4I")
_hh = struct.Struct("=4I")

FQ_CODEL_NAMES = ("maxpacket", "drop_overlimit", "ecn_mark", "new_flow_count", "new_flows_len", "old_flows_len",
                  "ce_mark", "memory_used", "drop_overmemory")  # fmt: skip
CODEL_NAMES = ("maxpacket", "count", "lastcount", "ldelay", "drop_next", "drop_overlimit", "ecn_mark", "dropping",
               "ce_mark")  # fmt: skip
FQ_NAMES = ("gc", "highprio", "retrans", "throttled", "flows_plimit", "pkts_too_long", "alloc_errors",
            "time_next_delayed_flow_ns", "flows", "inactive", "throttled_flows", "unthrottle_latency_ns")  # fmt: skip
PIE_NAMES = ("prob", "delay", "avg_dq_rate", "dq_rate_estimating", "packets_in", "dropped", "overlimit", "maxq",
             "ecn_mark")  # fmt: skip
RED_NAMES = ("early", "pdrop", "other", "marked")
HHF_NAMES = ("drop_overlimit", "hh_overlimit", "hh_tot", "hh_cur")
CAKE_NAMES = {2: "capacity_estimate", 3: "memory_limit", 4: "memory_used", 5: "avg_hdr_offset", 6: "max_network_size",
              7: "max_adjusted_size", 8: "min_network_size", 9: "min_adjusted_size"}  # fmt: skip


def statistics(kind: str, raw: bytes) -> dict[str, int]:
    """TCA_STATS_APP of a qdisc; empty where it has none or its kind is not known."""
    decode = _STATISTICS.get(kind) if raw else None
    try:
        return decode(raw) if decode else {}
    except struct.error:  # an older kernel's shorter structure
        return {}


def _record(layout: struct.Struct, names: tuple[str, ...]) -> Callable[[bytes], dict[str, int]]:
    return lambda raw: dict(zip(names, layout.unpack_from(raw), strict=True))


def _fq_codel_statistics(raw: bytes) -> dict[str, int]:
    kind, *values = _fq_codel.unpack_from(raw)
    return dict(zip(FQ_CODEL_NAMES, values, strict=True)) if kind == 0 else {}


def _cake_statistics(raw: bytes) -> dict[str, int]:
    return _numbers(raw, CAKE_NAMES)


_STATISTICS: Mapping[str, Callable[[bytes], dict[str, int]]] = {
    "fq_codel": _fq_codel_statistics,
    "codel": _record(_codel, CODEL_NAMES),
    "fq": _record(_fq, FQ_NAMES),
    "pie": _record(_pie, PIE_NAMES),
    "red": _record(_red, RED_NAMES),
    "hhf": _record(_hh, HHF_NAMES),
    "cake": _cake_statistics,
}


@lru_cache(maxsize=4096)
def _options(kind: str, raw: bytes) -> tuple[tuple[str, int | str], ...]:
    decode = _OPTIONS.get(kind)
    try:
        return tuple((decode(raw) if decode else _by_pyroute2(kind, raw)).items())
    except (struct.error, KeyError, IndexError):  # a shorter structure than this kernel's headers describe
        return ()


def options(kind: str, raw: bytes) -> Values:
    """TCA_OPTIONS of a qdisc; empty where it has none or its kind is not known. The same bytes are decoded once."""
    return dict(_options(kind, raw)) if raw else {}


def _numbers(raw: bytes, names: Mapping[int, str]) -> dict[str, int]:
    """Nested attributes of 4 or 8 bytes, by the names given."""
    found = {}
    for kind, (start, end) in attributes(raw, 0, len(raw)).items():
        name = names.get(kind)
        if name is not None and end - start in (1, 4, 8):
            found[name] = int.from_bytes(raw[start:end], "little" if _LITTLE else "big")
    return found


_LITTLE = struct.pack("=H", 1) == b"\1\0"


def _nested(names: dict[int, str]) -> Callable[[bytes], Values]:
    return lambda raw: dict(_numbers(raw, names))


def _fifo(raw: bytes) -> Values:
    return {"limit": struct.unpack_from("=I", raw)[0]}


def _prio(raw: bytes) -> Values:
    bands, *priomap = struct.unpack_from("=i16B", raw)
    return {"bands": bands, "priomap": " ".join(map(str, priomap))}


def _sfq(raw: bytes) -> Values:
    quantum, perturb, limit, divisor, flows = struct.unpack_from("=IiIII", raw)
    values: Values = {"limit": limit, "quantum": quantum, "divisor": divisor, "flows": flows, "perturb_s": perturb}
    if len(raw) >= 24:
        values["depth"] = struct.unpack_from("=I", raw, 20)[0]
    return values


def _tbf(raw: bytes) -> Values:
    """TCA_TBF_PARMS 1, RATE64 4, PRATE64 5, BURST 6. Without BURST the bucket is in scheduler ticks: left out."""
    found = attributes(raw, 0, len(raw))
    at = found[1][0]
    rate, peak = struct.unpack_from("=I", raw, at + 8)[0], struct.unpack_from("=I", raw, at + 20)[0]
    values: Values = {"rate": rate, "limit": struct.unpack_from("=I", raw, at + 24)[0]}
    wide = _numbers(raw, {4: "rate", 5: "peakrate", 6: "burst"})
    if peak:
        values["peakrate"] = peak
    return values | wide


def _htb(raw: bytes) -> Values:
    """TCA_HTB_INIT 2, DIRECT_QLEN 5"""
    found = attributes(raw, 0, len(raw))
    _, r2q, default, _, direct = struct.unpack_from("=5I", raw, found[2][0])
    values: Values = {"r2q": r2q, "default": f"0x{default:x}", "direct_packets_stat": direct}
    return values | _numbers(raw, {5: "direct_qlen"})


def _red_options(raw: bytes) -> Values:
    """TCA_RED_PARMS 1"""
    at = attributes(raw, 0, len(raw))[1][0]
    limit, low, high = struct.unpack_from("=3I", raw, at)
    flags = raw[at + 15]
    return {"limit": limit, "min": low, "max": high, "ecn": flags & 1}


def _by_pyroute2(kind: str, raw: bytes) -> Values:
    """The plain numbers and words that pyroute2 finds in the options of any other qdisc. Its import takes 0.1 s."""
    from pyroute2.netlink.rtnl.tcmsg import plugins

    plugin = plugins.get(kind)
    decoder = getattr(plugin, "options", None)
    if decoder is None:
        return {}
    try:
        message = decoder(struct.pack("=HH", len(raw) + 4, 2) + raw)
        message.decode()
    except Exception:  # whatever a decoder of a newer kernel's bytes may raise: the qdisc has no options to show
        return {}
    fields = {name: value for name, value in message.items() if name not in ("attrs", "header")}
    fields |= {name.split("_", 2)[-1].lower(): value for name, value in message.get("attrs", ())}
    return {name: value for name, value in fields.items() if isinstance(value, int | str)}


_OPTIONS: Mapping[str, Callable[[bytes], Values]] = {
    "pfifo": _fifo,
    "bfifo": _fifo,
    "pfifo_head_drop": _fifo,
    "pfifo_fast": _prio,
    "prio": _prio,
    "sfq": _sfq,
    "tbf": _tbf,
    "htb": _htb,
    "red": _red_options,
    "fq_codel": _nested({1: "target", 2: "limit", 3: "interval", 4: "ecn", 5: "flows", 6: "quantum",
                         7: "ce_threshold", 8: "drop_batch", 9: "memory_limit"}),
    "codel": _nested({1: "target", 2: "limit", 3: "interval", 4: "ecn", 5: "ce_threshold"}),
    "pie": _nested({1: "target", 2: "limit", 3: "tupdate", 4: "alpha", 5: "beta", 6: "ecn", 7: "bytemode",
                    8: "dq_rate_estimator"}),
    "fq": _nested({1: "limit", 2: "flow_limit", 3: "quantum", 4: "initial_quantum", 5: "rate_enable",
                   7: "maxrate", 8: "buckets_log", 9: "refill_delay", 10: "orphan_mask", 11: "low_rate_threshold",
                   12: "ce_threshold", 13: "timer_slack_ns", 14: "horizon"}),
    "cake": _nested({2: "bandwidth", 3: "diffserv_mode", 4: "atm", 5: "flow_mode", 6: "overhead", 7: "rtt",
                     8: "target", 9: "autorate", 10: "memlimit", 11: "nat", 12: "raw", 13: "wash", 14: "mpu",
                     15: "ingress", 16: "ack_filter", 17: "split_gso"}),
}  # fmt: skip
