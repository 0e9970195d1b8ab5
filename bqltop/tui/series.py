"""What the chart can draw: which figures of the history, under which name, in which scale."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bqltop import fields
from bqltop import format as fmt

Formatter = Callable[[float | None], str]


@dataclass(frozen=True, slots=True)
class Series:
    """One lane of the chart. ``id`` is a figure of bqltop.charted. ``top`` fixes the upper edge, ``top_from`` names the
    figure that does (the ring's size), ``over`` the one drawn over it in the same scale (limit over inflight).
    ``by_ebpf``: only eBPF can see it."""

    id: str
    title: str
    format: Formatter
    top: float | None = None
    top_from: str | None = None
    over: str | None = None
    least_top: float = 1.0
    by_ebpf: bool = False


def _series(scope: str, id: str, title: str | None = None, **options) -> Series:
    field = fields.get(scope, id)
    return Series(id, title or field.title, field.format, **options)


SERIES: tuple[Series, ...] = (
    _series("queue", "stopped_share", top=1.0, by_ebpf=True),
    _series("queue", "inflight", over="limit"),
    _series("queue", "ring_used", top_from="ring_size", by_ebpf=True),
    _series("qdisc", "requeues_per_s", "requeues/s", least_top=10.0),
    _series("qdisc", "backlog_packets", "qdisc backlog", least_top=10.0),
    _series("queue", "packets_per_s", "packets/s", least_top=10.0, by_ebpf=True),
    _series("napi", "work_average", "packets per NAPI poll", top=64.0, by_ebpf=True),
    _series("queue", "dark_buffer_s", "dark-buffer latency", least_top=1e-6, by_ebpf=True),
    _series("qdisc", "drops_per_s", "drops/s", least_top=10.0),
    _series("queue", "qdisc_sojourn_p99_s", "wait in the qdisc, p99", least_top=1e-6, by_ebpf=True),
    _series("queue", "ring_sojourn_p99_s", "wait in the ring, p99", least_top=1e-6, by_ebpf=True),
    Series("polls_per_s", "NAPI polls/s", fmt.rate, least_top=10.0, by_ebpf=True),
)
ZOOMS_S = (10, 30, 60, 300, 900, 3600)
"""Spans of time the chart can show."""
DEFAULT_ZOOM = ZOOMS_S.index(60)
