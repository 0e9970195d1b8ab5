"""When a sweep must stop: bounds on drops, loss and waits, and the watchdog always. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from bqltop.sweep.figures import BY_ID, Span
from bqltop.sweep.plan import BadPlan
from bqltop.window import Window

FIGURE_OF = {
    "drops": "drop_share",
    "loss": "rtt_loss",
    "rtt": "rtt_avg_s",
    "qdisc": "qdisc_p99_s",
    "ring": "ring_p99_s",
    "stopped": "stopped_share",
}
"""What a bound may be on, and the figure that it is held against."""
LEAST_ECHOES = 5
"""Echoes below which neither loss nor round trip say anything."""
_BOUND = re.compile(r"^(?P<what>[a-z]+)\s*>\s*(?P<number>\d+(\.\d+)?)\s*(?P<unit>%|ns|us|ms|s)$", re.ASCII)
_SCALE = {"%": 0.01, "ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}


@dataclass(frozen=True, slots=True)
class Bound:
    """``what`` (a key of FIGURE_OF) must not exceed ``value`` (a share, or seconds). ``text`` is how it was typed."""

    what: str
    value: float
    text: str


def parse_bound(text: str) -> Bound:
    """``drops>1%``, ``loss>5%``, ``rtt>50ms``. Raises BadPlan."""
    found = _BOUND.match(text.strip())
    if not found or found["what"] not in FIGURE_OF:
        raise BadPlan(f"{text!r} is not WHAT>VALUE, as drops>1% or rtt>50ms; WHAT is one of {', '.join(FIGURE_OF)}")
    share = found["what"] in ("drops", "loss", "stopped")
    if share != (found["unit"] == "%"):
        raise BadPlan(f"{text!r}: {found['what']} is {'a share: give it in %' if share else 'a time: give it in ms'}")
    return Bound(found["what"], float(found["number"]) * _SCALE[found["unit"]], text.strip())


def watchdog(window: Window) -> str | None:
    """Why to stop at once: the transmit watchdog fired in this window."""
    for queue in window.queues:
        if queue.tx_timeouts:
            return f"the transmit watchdog fired on queue {queue.index}"
    return None


def exceeded(bounds: Sequence[Bound], span: Span) -> str | None:
    """The first bound that the span breaks, in words; None when it keeps them all."""
    for bound in bounds:
        if bound.what in ("loss", "rtt") and len(span.echoes) < LEAST_ECHOES:
            continue
        figure = BY_ID[FIGURE_OF[bound.what]]
        value = figure.of(span)
        if value is not None and value > bound.value:
            return f"{bound.text}: {figure.title} was {figure.format(value)}"
    return None
