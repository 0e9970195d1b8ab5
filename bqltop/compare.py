"""A and B: two settings held against each other by hand, span by span. Pure; bqltop sweep does it by itself.

The first mark begins A; each further mark ends the span and begins one of the other letter, so that going back and
forth a few times interleaves them: what drifts meanwhile (the load, the machine) then meets both alike. All seconds of A
are held against all seconds of B by the rank test of bqltop.tuning.effect (Mann-Whitney's U, two-sided, ALPHA).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from bqltop.model import ProbeSample, Sample
from bqltop.tuning import effect
from bqltop.tuning.effect import ALPHA, FEWEST_SECONDS, WARM_UP_S, Effect, Figure
from bqltop.window import Window

MOST_SECONDS = 600
"""Seconds kept of each letter."""


def _worst(name: str) -> Callable[[Window, int | None], float | None]:
    """The largest over the queues."""

    def of(window: Window, queue: int | None) -> float | None:
        found = [getattr(q, name) for q in window.queues if queue is None or q.index == queue]
        return max((value for value in found if value is not None), default=None)

    return of


def _echoes(name: str) -> Callable[[Window, int | None], float | None]:
    def of(window: Window, _queue: int | None) -> float | None:
        probe: ProbeSample | None = window.newer.probe
        value = getattr(probe, name) if probe else None
        return None if value is None else value / 1e9

    return of


FIGURES: tuple[Figure, ...] = (
    *effect.FIGURES,
    Figure("rtt", "round trip", "s", -1, _echoes("rtt_last_ns")),
    Figure("qdisc_p50", "wait in qdisc p50", "s", -1, _worst("qdisc_sojourn_p50_s")),
    Figure("qdisc_p99", "wait in qdisc p99", "s", -1, _worst("qdisc_sojourn_p99_s")),
    Figure("ring_p50", "wait in ring p50", "s", -1, _worst("ring_sojourn_p50_s")),
    Figure("ring_p99", "wait in ring p99", "s", -1, _worst("ring_sojourn_p99_s")),
)


@dataclass(frozen=True, slots=True)
class Span:
    """One stretch between two marks. ``seconds`` so far, the warm-up left out."""

    letter: str
    begun_ns: int
    seconds: int


class Comparison:
    """Fed with every sample; ``mark`` is the key press. Times are CLOCK_MONOTONIC ns."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self._windows: dict[str, deque[Window]] = {letter: deque(maxlen=MOST_SECONDS) for letter in "AB"}
        self._cut: effect.Seconds | None = None

    @property
    def letter(self) -> str | None:
        """What is being measured now; None before the first mark."""
        return self.spans[-1].letter if self.spans else None

    def mark(self, now_ns: int) -> str:
        """Begin A, or end the present span and begin one of the other letter, which is returned."""
        letter = "B" if self.letter == "A" else "A"
        self.spans.append(Span(letter, now_ns, 0))
        self._cut = effect.Seconds()
        return letter

    def add(self, sample: Sample) -> None:
        """Take in a sample; those of the warm-up after a mark are left out."""
        if not self.spans or self._cut is None:
            return
        span = self.spans[-1]
        if sample.monotonic_ns < span.begun_ns + WARM_UP_S * 1e9:
            return
        self._cut.add(sample)
        while self._cut.windows:
            self._windows[span.letter].append(self._cut.windows.popleft())
            span = self.spans[-1] = Span(span.letter, span.begun_ns, span.seconds + 1)

    def seconds(self, letter: str) -> int:
        """Seconds measured of A or B so far."""
        return len(self._windows[letter])

    def table(self, queue: int | None = None) -> list[Effect]:
        """Every figure that either side has, A before B."""
        found = effect.compare(list(self._windows["A"]), list(self._windows["B"]), queue, FIGURES)
        return [one for one in found if one.before is not None or one.after is not None]

    def sentence(self, queue: int | None = None) -> str:
        """What it comes to."""
        a, b = self.seconds("A"), self.seconds("B")
        if not b:
            return f"A: {a} s measured. Change something, then mark again to begin B."
        if min(a, b) < FEWEST_SECONDS:
            return f"A {a} s, B {b} s: {FEWEST_SECONDS} s of each are needed."
        telling = [one for one in self.table(queue) if one.stands_out]
        test = f"rank test over {a} s of A and {b} s of B, p <= {ALPHA:g}"
        if not telling:
            return f"Nothing that could not be chance ({test})."
        shown = ", ".join(f"{one.figure.title} {_percent(one)}" for one in telling)
        once = "" if len(self.spans) > 2 else "; go back and forth with more marks to rule out a drift"
        return f"B differs from A by more than chance in: {shown} ({test}{once})."


def _percent(one: Effect) -> str:
    return "from 0" if one.percent is None else f"{one.percent:+.0f} %"
