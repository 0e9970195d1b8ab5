"""The figures of a trial: samples and echoes of a span -> numbers. Pure; the table of what they are is FIGURES."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from bqltop import format as fmt
from bqltop import histogram
from bqltop.model import Sample
from bqltop.probe.echoes import Echo, average, quantile
from bqltop.tuning import effect
from bqltop.window import Window, between


@dataclass(frozen=True, slots=True)
class Span:
    """What was seen during a trial: its samples, the window over all of it, and the echoes sent in it."""

    samples: Sequence[Sample]
    window: Window
    echoes: Sequence[Echo] = ()

    @classmethod
    def of(cls, samples: Sequence[Sample], echoes: Sequence[Echo] = ()) -> Span | None:
        """None where the samples must not be compared: too few, or the device was away or changed meanwhile."""
        window = between(samples[0], samples[-1]) if len(samples) > 1 else None
        return cls(samples, window, echoes) if window else None


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the result. ``better``: +1 more, -1 less, 0 neither."""

    id: str
    title: str
    better: int
    format: Callable[[float | None], str]
    of: Callable[[Span], float | None]


@dataclass(frozen=True, slots=True)
class Measured:
    """A trial's figures by id. ``scatter``: for those of SCATTER, what they were second by second (the round trip: echo
    by echo)."""

    figures: dict[str, float | None]
    scatter: dict[str, tuple[float, ...]] = field(default_factory=dict)


SCATTER = ("packets_per_s", "rtt_avg_s", "ring_p50_s", "dark_buffer_s", "qdisc_p50_s")
"""Figures that a recommendation may rest on: how much they scatter must be known."""


def measure(span: Span) -> Measured:
    """Every figure of FIGURES; None for what is not to be had."""
    seconds = cut(span.samples)
    scatter = {id: _values(BY_ID[id].of(one) for one in seconds) for id in SCATTER}
    scatter["rtt_avg_s"] = _values(None if echo.rtt_ns is None else echo.rtt_ns / 1e9 for echo in span.echoes)
    return Measured({figure.id: figure.of(span) for figure in FIGURES}, scatter)


def cut(samples: Sequence[Sample], length_s: float = 1.0) -> list[Span]:
    """Spans of about a second each, without their echoes; what is left over at the end is left out."""
    spans: list[Span] = []
    start = 0
    for end, sample in enumerate(samples):
        # a tenth of slack, as a sample may come a little early
        if sample.monotonic_ns - samples[start].monotonic_ns >= length_s * 0.9e9:
            span = Span.of(samples[start : end + 1])
            spans += [span] if span else []
            start = end
    return spans


def _values(found: Iterable[float | None]) -> tuple[float, ...]:
    return tuple(value for value in found if value is not None)


def _effect(id: str) -> Callable[[Span], float | None]:
    """A figure that the before-and-after comparison has too."""
    found = next(figure for figure in effect.FIGURES if figure.id == id)
    return lambda span: found.of(span.window, None)


def _sojourn(name: str, share: float) -> Callable[[Span], float | None]:
    """A percentile of the wait of the packets of all queues together, seconds."""

    def of(span: Span) -> float | None:
        before = {queue.index: getattr(queue, name) for queue in span.samples[0].queues}
        cells = [
            histogram.difference(getattr(queue, name), before.get(queue.index))
            for queue in span.samples[-1].queues
            if getattr(queue, name) is not None
        ]
        wait = histogram.percentile([sum(column) for column in zip(*cells, strict=True)], share) if cells else None
        return None if wait is None else wait / 1e9

    return of


def _trip(of: Callable[[list[int]], float | None]) -> Callable[[Span], float | None]:
    def value(span: Span) -> float | None:
        found = of(sorted(echo.rtt_ns for echo in span.echoes if echo.rtt_ns is not None))
        return None if found is None else found / 1e9

    return value


def _loss(span: Span) -> float | None:
    if not span.echoes:
        return None
    return sum(echo.rtt_ns is None for echo in span.echoes) / len(span.echoes)


def _limit(span: Span) -> float | None:
    """Median of the limit over samples and queues in use."""
    busy = {queue.index for queue in span.window.queues if not queue.idle}
    return effect.median([
        queue.limit for sample in span.samples for queue in sample.queues
        if queue.index in busy and queue.limit is not None
    ])  # fmt: skip


def _dark_buffer(span: Span) -> float | None:
    """Mean occupancy of the rings in use over the rate they drain at, seconds (Little's law)."""
    worst = None
    for queue in span.window.queues:
        used = [q.ring_used for sample in span.samples for q in sample.queues if q.index == queue.index]
        if queue.idle or not queue.drained_per_s or not used or None in used:
            continue
        worst = max(worst or 0.0, sum(used) / len(used) / queue.drained_per_s)
    return worst


def _drop_share(span: Span) -> float | None:
    drops, packets = _effect("drops")(span), _effect("packets")(span)
    return None if drops is None or not packets else drops / (drops + packets)


def _plain(value: float | None) -> str:
    return fmt.ABSENT if value is None else f"{value:.1f}"


FIGURES: tuple[Figure, ...] = (
    Figure("packets_per_s", "packets/s", +1, fmt.rate, _effect("packets")),
    Figure("rtt_avg_s", "round trip avg", -1, fmt.seconds, _trip(average)),
    Figure("rtt_p50_s", "round trip p50", -1, fmt.seconds, _trip(lambda trips: quantile(trips, 0.50))),
    Figure("rtt_p99_s", "round trip p99", -1, fmt.seconds, _trip(lambda trips: quantile(trips, 0.99))),
    Figure("rtt_loss", "echoes lost", -1, fmt.share, _loss),
    Figure("qdisc_p50_s", "wait in qdisc p50", -1, fmt.seconds, _sojourn("qdisc_sojourn_histogram", 0.50)),
    Figure("qdisc_p99_s", "wait in qdisc p99", -1, fmt.seconds, _sojourn("qdisc_sojourn_histogram", 0.99)),
    Figure("ring_p50_s", "wait in ring p50", -1, fmt.seconds, _sojourn("ring_sojourn_histogram", 0.50)),
    Figure("ring_p99_s", "wait in ring p99", -1, fmt.seconds, _sojourn("ring_sojourn_histogram", 0.99)),
    Figure("dark_buffer_s", "ring occupancy / rate", -1, fmt.seconds, _dark_buffer),
    Figure("requeues_per_s", "requeues/s", -1, fmt.rate, _effect("requeues")),
    Figure("napi_work", "packets per NAPI poll", 0, _plain, _effect("work")),
    Figure("limit_p50", "limit p50", 0, fmt.count, _limit),
    Figure("stopped_share", "share stopped", 0, fmt.share, _effect("stopped")),
    Figure("drop_share", "share dropped in qdisc", -1, fmt.share, _drop_share),
)
BY_ID = {figure.id: figure for figure in FIGURES}
