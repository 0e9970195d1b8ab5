"""Every knob: what it is called, its unit, its bounds, its steps, and what to think of before turning it.

Pure: nothing here asks the kernel. A knob's bounds stand in its definition and nowhere else; where only the device
knows them (the size a ring may have) a Setting carries them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from bqltop.kernel.rtnl_set import RECREATED

Value = int | str
"""A number, 0 or 1 for a switch, text for a qdisc."""

U32 = 0xFFFFFFFF
S32 = 0x7FFFFFFF
DQL_MAX_LIMIT = U32 // 2 - U32 // 16
"""include/linux/dynamic_queue_limits.h: (UINT_MAX / 2) - DQL_MAX_OBJECT, and DQL_MAX_OBJECT is UINT_MAX / 16."""


class Source(Enum):
    """Through what a knob is read and written."""

    BQL = "bql"
    COALESCE = "coalesce"
    RINGS = "rings"
    CHANNELS = "channels"
    LINK = "link"
    FEATURE = "feature"
    SYSFS = "sysfs"
    QDISC = "qdisc"
    QDISC_OPTION = "qdisc option"


class Kind(Enum):
    NUMBER = "number"
    SWITCH = "switch"
    TEXT = "text"


class BadValue(ValueError):
    """The value cannot be meant; the text is one plain line."""


@dataclass(frozen=True, slots=True)
class Knob:
    """One adjustable value.

    ``id`` is what a person types, ``name`` what the source calls it (a file, an ethtool word, a parameter).
    ``low``/``high`` are in ``unit``; with ``jiffies`` they are in ticks, because that is what the kernel checks.
    ``zero_too``: 0 switches it off and is allowed below ``low``. ``cuts`` says how turning it can cut traffic, None
    if it cannot. ``peer``: it belongs to the other end of the veth pair. ``unit`` "queue" is what BQL counts on this
    device, packets or bytes.
    """

    id: str
    source: Source
    name: str
    help: str
    unit: str = ""
    kind: Kind = Kind.NUMBER
    low: int = 0
    high: int = U32
    jiffies: bool = False
    zero_too: bool = False
    words: Mapping[str, int] = field(default_factory=dict)
    series: str = "1-2-5"
    cuts: str | None = None
    peer: bool = False

    @property
    def per_queue(self) -> bool:
        return self.source is Source.BQL

    def on_peer(self) -> Knob:
        """The same knob of the other end of a veth pair."""
        return dataclasses.replace(self, id=f"peer-{self.id}", peer=True)

    def parse(self, text: str) -> Value:
        """The value a person typed. Raises BadValue."""
        text = text.strip()
        if self.kind is Kind.TEXT:
            return _text(self, text)
        if self.kind is Kind.SWITCH:
            return _switch(self, text)
        if text in self.words:
            return self.words[text]
        if not (text.isascii() and text.isdigit()):
            words = "".join(f" or {word}" for word in self.words)
            raise BadValue(f"{self.id} takes a whole number{words}, not {text!r}")
        return int(text)

    def show(self, value: Value | None) -> str:
        """The value as a person reads it; "-" for none."""
        if value is None:
            return "-"
        if self.kind is Kind.SWITCH:
            return "on" if value else "off"
        return next((word for word, meant in self.words.items() if meant == value), str(value))

    def step(self, value: int, direction: int, low: int, high: int) -> int:
        """The next sensible value up (+1) or down (-1), within the bounds."""
        if self.kind is Kind.SWITCH:
            return 1 - value
        stops = _stops(self.series, value, low, high, self.zero_too)
        if direction > 0:
            return next((stop for stop in stops if stop > value), value)
        return next((stop for stop in reversed(stops) if stop < value), value)


@dataclass(frozen=True, slots=True)
class Setting:
    """A knob on a device, now. ``values``: one per queue for per-queue knobs, else one; empty where there is none.

    ``queues`` are the queues of ``values``. ``why_not`` is why it cannot be set, in the kernel's words where they
    are the kernel's, with its ``errno``; None when it can.
    """

    knob: Knob
    device: str
    netns: str | None
    values: tuple[Value, ...] = ()
    queues: tuple[int | None, ...] = (None,)
    low: int = 0
    high: int = U32
    unit: str = ""
    why_not: str | None = None
    errno: int | None = None

    @property
    def value(self) -> Value | None:
        """The value, None when there is none or the queues differ."""
        return self.values[0] if len(set(self.values)) == 1 else None

    @property
    def text(self) -> str:
        """The value as a person reads it; a span where the queues differ."""
        if len(set(self.values)) > 1:
            return f"{self.knob.show(min(self.values))}..{self.knob.show(max(self.values))}"
        return self.knob.show(self.value)

    @property
    def bounds(self) -> str:
        """The allowed values, in words."""
        knob = self.knob
        if knob.kind is Kind.SWITCH:
            return "on, off"
        if knob.kind is Kind.TEXT:
            return "KIND [PARAMETER VALUE]..."
        zero = "0 or " if knob.zero_too and self.low > 0 else ""
        return f"{zero}{self.low}..{self.high}" + "".join(f" or {word}" for word in knob.words)

    def check(self, text: str) -> Value:
        """The value a person typed, within the bounds. Raises BadValue."""
        value = self.knob.parse(text)
        if isinstance(value, str) or self.low <= value <= self.high or (value == 0 and self.knob.zero_too):
            return value
        raise BadValue(f"{self.knob.id} takes {self.bounds}, not {text.strip()}")

    def step(self, direction: int, frm: Value | None = None) -> Value | None:
        """The next sensible value from ``frm`` (default: the value now); None where stepping makes no sense."""
        start = self.value if frm is None else frm
        if not isinstance(start, int):
            return None
        return self.knob.step(start, direction, self.low, self.high)


def bounds(knob: Knob, maximum: int | None, hz: int) -> tuple[int, int]:
    """A knob's bounds on one device, in its unit. ``hz``: the kernel's jiffies per second."""
    low, high = knob.low, knob.high if maximum is None else min(knob.high, maximum)
    return (low * 1000 // hz, high * 1000 // hz) if knob.jiffies else (low, high)


def _bql(name: str, help: str, **more) -> Knob:
    return Knob(name, Source.BQL, name, help, **more)


def _coalesce(name: str, help: str, unit: str, **more) -> Knob:
    return Knob(name, Source.COALESCE, name, help, unit, **more)


_ADAPTIVE = "the driver chooses usecs and frames by itself from the packet rate"
_RESETS = "most cards reset the link to resize a ring: packets in flight are lost"
_REQUEUES = "changing channels re-makes the queues: most cards reset the link, and BQL limits set on a queue may be lost"
_SWAPS = "packets that wait in the old qdisc are dropped"

_STATIC = (
    _bql("limit_min", "BQL never limits the queue below this", unit="queue", high=DQL_MAX_LIMIT,
         words={"max": DQL_MAX_LIMIT}, series="doubling"),
    _bql("limit_max", "BQL never lets the queue grow above this", unit="queue", high=DQL_MAX_LIMIT,
         words={"max": DQL_MAX_LIMIT}, series="doubling"),
    _bql("hold_time", "how long a slack must last before the limit shrinks", unit="ms", high=S32),
    _bql("stall_thrs", "a completion later than this counts as a stall; 0 is off", unit="ms", low=4, high=128,
         jiffies=True, zero_too=True, series="doubling"),
    _coalesce("tx-usecs", "wait this long before completing transmitted packets", "us"),
    _coalesce("tx-frames", "or until this many packets are there to complete", "packets", series="doubling"),
    _coalesce("rx-usecs", "wait this long before a received packet interrupts", "us"),
    _coalesce("rx-frames", "or until this many packets have been received", "packets", series="doubling"),
    _coalesce("adaptive-tx", _ADAPTIVE, "", kind=Kind.SWITCH),
    _coalesce("adaptive-rx", _ADAPTIVE, "", kind=Kind.SWITCH),
    Knob("ring-tx", Source.RINGS, "tx", "entries of each TX ring: what can wait where the qdisc cannot see it",
         "entries", low=1, series="doubling", cuts=_RESETS),
    Knob("ring-rx", Source.RINGS, "rx", "entries of each RX ring", "entries", low=1, series="doubling", cuts=_RESETS),
    Knob("channels-tx", Source.CHANNELS, "tx", "TX queues", "queues", series="one", cuts=_REQUEUES),
    Knob("channels-rx", Source.CHANNELS, "rx", "RX queues", "queues", series="one", cuts=_REQUEUES),
    Knob("channels-combined", Source.CHANNELS, "combined", "queue pairs that share an interrupt", "queues",
         series="one", cuts=_REQUEUES),
    Knob("channels-other", Source.CHANNELS, "other", "interrupts for neither receive nor transmit", "queues",
         series="one", cuts=_REQUEUES),
    Knob("txqueuelen", Source.LINK, "txqueuelen",
         "packets a pfifo qdisc made from now on holds; on tun and tap the ring's size", "packets"),
    Knob("tso", Source.FEATURE, "tso",
         "the stack hands over segments of up to 64 kB; on veth it must be off for the ring to be used", kind=Kind.SWITCH),
    Knob("gro", Source.FEATURE, "gro",
         "received segments are merged; on veth it switches NAPI and the ring on for what the peer sends", kind=Kind.SWITCH),
    Knob("threaded", Source.SYSFS, "threaded", "NAPI polls in kernel threads instead of softirq", kind=Kind.SWITCH),
    Knob("gro_flush_timeout", Source.SYSFS, "gro_flush_timeout",
         "longest time GRO keeps a packet, and the pause between deferred polls", "ns"),
    Knob("napi_defer_hard_irqs", Source.SYSFS, "napi_defer_hard_irqs",
         "empty polls before the interrupt is switched on again", "polls", high=S32),
    Knob("tx_timer_usecs", Source.SYSFS, "cdc_ncm/tx_timer_usecs",
         "how long packets are gathered into one transfer; 0 is off", "us", low=5, high=U32 // 1000, zero_too=True),
    Knob("qdisc", Source.QDISC, "qdisc", "the root qdisc, with the parameters it is made with", kind=Kind.TEXT, cuts=_SWAPS),
)  # fmt: skip
KNOBS: dict[str, Knob] = {knob.id: knob for knob in _STATIC}
PEER_KNOBS: dict[str, Knob] = {
    knob.id: knob
    for knob in (KNOBS[name].on_peer() for name in ("gro", "threaded", "gro_flush_timeout", "napi_defer_hard_irqs"))
}
"""What of the other end of a veth pair decides how this end's packets are taken: its NAPI does the polling."""

FEATURES: dict[str, str] = {"tso": "tx-tcp*-segmentation", "gro": "rx-gro"}
"""What ``ethtool -K`` means by its short words: a pattern over the kernel's names (ethtool.c: off_flag_def)."""

QDISC_TIMES = frozenset({"target", "interval", "ce_threshold", "tupdate"})
"""Parameters in microseconds."""
_QDISC_UNITS = {"target": "us", "interval": "us", "ce_threshold": "us", "tupdate": "us", "quantum": "bytes",
                "initial_quantum": "bytes", "memory_limit": "bytes", "flow_limit": "packets", "perturb": "s"}  # fmt: skip


def qdisc_knob(kind: str, parameter: str) -> Knob:
    """The knob of one parameter of the root qdisc that is there now (``qdisc-limit``, ``qdisc-target``, ...)."""
    unit = _QDISC_UNITS.get(parameter, "")
    if parameter == "limit":
        unit = "bytes" if kind == "bfifo" else "packets"
    return Knob(
        f"qdisc-{parameter}", Source.QDISC_OPTION, parameter, f"{parameter} of the {kind} qdisc", unit,
        kind=Kind.SWITCH if parameter == "ecn" else Kind.NUMBER, cuts=_SWAPS if kind in RECREATED else None,
    )  # fmt: skip


def parse_qdisc(text: str) -> tuple[str, dict[str, int]]:
    """``"fq_codel limit 1024 target 5ms ecn"`` -> its kind and parameters (times in microseconds); commas and ``=``
    may stand for spaces. Raises BadValue."""
    kind, *words = text.replace(",", " ").replace("=", " ").split() or [""]
    if not kind.replace("_", "").isalnum():
        raise BadValue(f"qdisc takes KIND [PARAMETER VALUE]..., not {text!r}")
    parameters = {}
    while words:
        name = words.pop(0)
        if name in ("ecn", "noecn"):
            parameters["ecn"] = int(name == "ecn")
            continue
        if not words:
            raise BadValue(f"qdisc {kind}: {name} has no value")
        parameters[name] = _quantity(name, words.pop(0))
    return kind, parameters


def show_qdisc(kind: str, parameters: Mapping[str, int]) -> str:
    """The inverse of parse_qdisc, in tc's words."""
    return " ".join([kind, *(_show_parameter(name, value) for name, value in parameters.items())])


def _show_parameter(name: str, value: int) -> str:
    if name == "ecn":
        return "ecn" if value else "noecn"
    return f"{name} {value}us" if name in QDISC_TIMES else f"{name} {value}"


def _quantity(name: str, word: str) -> int:
    scale = 1
    if name in QDISC_TIMES:
        for suffix, factor in (("us", 1), ("ms", 1000), ("s", 1_000_000)):
            if word.endswith(suffix):
                word, scale = word.removesuffix(suffix), factor
                break
    if not (word.isascii() and word.isdigit()) or int(word) * scale > U32:
        raise BadValue(f"qdisc: {name} takes a whole number, not {word!r}")
    return int(word) * scale


def _text(knob: Knob, text: str) -> str:
    return show_qdisc(*parse_qdisc(text)) if knob.source is Source.QDISC else text


def _switch(knob: Knob, text: str) -> int:
    if text in ("on", "1"):
        return 1
    if text in ("off", "0"):
        return 0
    raise BadValue(f"{knob.id} takes on or off, not {text!r}")


def _stops(series: str, value: int, low: int, high: int, zero: bool) -> list[int]:
    """The values stepping stops at, in order, the bounds among them."""
    if series == "one":
        stops = [value - 1, value + 1]
    else:
        factors = (1,) if series == "doubling" else (1, 2, 5)
        base = 2 if series == "doubling" else 10
        stops, scale = [0], 1
        while scale <= high:
            stops += [factor * scale for factor in factors]
            scale *= base
    inside = {stop for stop in stops if low <= stop <= high} | {low, high} | ({0} if zero else set())
    return sorted(inside)
