"""What a change did: the span before it and the span after it, figure by figure.

Pure. Each span is cut into seconds; a figure stands out when its seconds after differ from its seconds before by more
than their own scatter explains. The test is Mann-Whitney's U, two-sided, with the exact distribution (every way the
ranks could have fallen, ties included) as long as that is quick, the normal approximation with tie correction after;
see Mann and Whitney, "On a Test of Whether one of Two Random Variables is Stochastically Larger", 1947. It asks nothing of
the shape of the scatter. Seconds that hang together (a slow swing of the load) make it too sure of itself: what it
says is about these two spans, not about why they differ.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from bqltop.model import Sample
from bqltop.window import QdiscWindow, QueueWindow, Window, between

ALPHA = 0.01
"""A figure stands out when chance would differ this much in at most one of a hundred comparisons: with a dozen
figures side by side, 0.05 would cry wolf in every other table."""
FEWEST_SECONDS = 5
"""Below 5 seconds on each side no difference can reach ALPHA (2 / C(10, 5) = 0.008 is the smallest there)."""
EXACT_UP_TO = 24
"""Seconds of both sides together up to which the exact distribution is computed (some milliseconds at 24)."""
SLACK_NS = 200_000_000
"""Windows do not end on the second."""
WARM_UP_S = 1.0
"""Left out after a change: the limit and the load need their moment to follow."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the comparison: how to get it from a window of about a second. ``better``: +1 more, -1 less, 0
    neither."""

    id: str
    title: str
    unit: str
    better: int
    of: Callable[[Window, int | None], float | None]


@dataclass(frozen=True, slots=True)
class Effect:
    """One figure before and after: the medians of its seconds. ``percent``: difference in percent of before, None
    where before is 0 or one side is missing. ``p``: how often chance alone would differ as much; None with fewer than
    FEWEST_SECONDS seconds on one side. ``stands_out``: p is at most ALPHA. ``seconds``: how many on each side.
    """

    figure: Figure
    before: float | None
    after: float | None
    percent: float | None
    p: float | None
    stands_out: bool
    seconds: tuple[int, int]

    @property
    def verdict(self) -> str:
        """In a few words, for the screen's last column."""
        if self.before is None or self.after is None:
            return "no figure"
        if self.p is None:
            return f"{FEWEST_SECONDS} s on each side needed"
        if not self.stands_out:
            return "within the noise"
        if not self.figure.better:
            return "stands out"
        return "better" if (self.after > self.before) == (self.figure.better > 0) else "worse"


class Seconds:
    """Cuts samples as they come into windows of about a second, of which the last ``kept`` stay: small, without the
    samples they were made of. Gaps and fresh baselines begin a new window."""

    def __init__(self, length_s: float = 1.0, kept: int | None = None) -> None:
        # a tenth of slack: at 10 samples a second one of them must not stretch every window to 1.1 s
        self._length_ns = length_s * 0.95e9
        self._begin: Sample | None = None
        self.windows: deque[Window] = deque(maxlen=kept)

    def add(self, sample: Sample) -> None:
        begin = self._begin
        if begin is None or sample.epoch != begin.epoch or not sample.present or not begin.present:
            self._begin = sample
        elif sample.monotonic_ns - begin.monotonic_ns >= self._length_ns:
            window = between(begin, sample)
            if window:
                self.windows.append(replace(window, newer=replace(sample, queues=(), napis=(), qdiscs=(), cpus=())))
            self._begin = sample


def seconds(samples: Iterable[Sample], length_s: float = 1.0) -> list[Window]:
    """Cut a run of samples into windows of about ``length_s``."""
    cut = Seconds(length_s)
    for sample in samples:
        cut.add(sample)
    return [*cut.windows]


def split(windows: Iterable[Window], changed_ns: int, span_s: float = 15.0,
          until_ns: int | None = None) -> tuple[list[Window], list[Window]]:  # fmt: skip
    """The windows of the span before a change and of the span after it (monotonic time), without the warm-up and
    without what came after ``until_ns`` (the next change)."""
    first, last = changed_ns - int(span_s * 1e9), changed_ns + int((WARM_UP_S + span_s) * 1e9)
    last = last if until_ns is None else min(last, until_ns)
    before, after = [], []
    for window in windows:
        end = window.newer.monotonic_ns
        begin = end - int(window.seconds * 1e9)
        if first - SLACK_NS <= begin and end <= changed_ns:
            before.append(window)
        elif changed_ns + int(WARM_UP_S * 1e9) <= begin and end <= last + SLACK_NS:
            after.append(window)
    return before, after


def compare(before: Sequence[Window], after: Sequence[Window], queue: int | None = None,
            figures: Sequence[Figure] | None = None) -> list[Effect]:  # fmt: skip
    """Every figure (of ``figures``, default FIGURES) before and after; ``queue``: of this TX queue only, where a figure
    is one of a queue."""
    return [_effect(figure, before, after, queue) for figure in figures or FIGURES]


def _effect(figure: Figure, before: Sequence[Window], after: Sequence[Window], queue: int | None) -> Effect:
    a = [value for window in before if (value := figure.of(window, queue)) is not None]
    b = [value for window in after if (value := figure.of(window, queue)) is not None]
    old, new = median(a), median(b)
    percent = (new - old) / old * 100 if old and new is not None else None
    p = mann_whitney(a, b) if min(len(a), len(b)) >= FEWEST_SECONDS else None
    return Effect(figure, old, new, percent, p, p is not None and p <= ALPHA, (len(a), len(b)))


def median(values: Sequence[float]) -> float | None:
    """The middle value, None of nothing."""
    if not values:
        return None
    ordered, half = sorted(values), len(values) // 2
    return ordered[half] if len(values) % 2 else (ordered[half - 1] + ordered[half]) / 2


# the test


def mann_whitney(a: Sequence[float], b: Sequence[float]) -> float:
    """Two-sided p of Mann-Whitney's U: 1.0 when the two cannot be told apart."""
    ranks = _ranks([*a, *b])
    rank_sum, expected = sum(ranks[: len(a)]), len(a) * (len(ranks) + 1)
    if len(ranks) <= EXACT_UP_TO:
        return _exact(ranks, len(a), abs(rank_sum - expected))
    return _normal(ranks, len(a), abs(rank_sum - expected) / 2)


def _ranks(values: Sequence[float]) -> list[int]:
    """Ranks times two, so that the middle ranks of ties are whole numbers."""
    order = sorted(range(len(values)), key=values.__getitem__)
    ranks, start = [0] * len(values), 0
    while start < len(order):
        end = start
        while end + 1 < len(order) and values[order[end + 1]] == values[order[start]]:
            end += 1
        for place in order[start : end + 1]:
            ranks[place] = start + end + 2
        start = end + 1
    return ranks


def _exact(ranks: Sequence[int], size: int, distance: int) -> float:
    """Share of all ways to choose ``size`` of the ranks whose sum is at least as far from the middle."""
    ways: list[dict[int, int]] = [{0: 1}] + [{} for _ in range(size)]
    for rank in ranks:
        for chosen in range(size, 0, -1):
            cell = ways[chosen]
            for total, count in ways[chosen - 1].items():
                cell[total + rank] = cell.get(total + rank, 0) + count
    middle = size * (len(ranks) + 1)
    far = sum(count for total, count in ways[size].items() if abs(total - middle) >= distance)
    return far / math.comb(len(ranks), size)


def _normal(ranks: Sequence[int], size: int, distance: float) -> float:
    """The normal approximation with the tie and continuity corrections."""
    n, other = len(ranks), len(ranks) - size
    ties = sum(count**3 - count for count in _counts(ranks))
    variance = size * other / 12 * (n + 1 - ties / (n * (n - 1)))
    if variance <= 0:
        return 1.0
    return math.erfc(max(0.0, distance - 0.5) / math.sqrt(2 * variance))


def _counts(values: Iterable[int]) -> list[int]:
    found: dict[int, int] = {}
    for value in values:
        found[value] = found.get(value, 0) + 1
    return list(found.values())


# the figures


def _queues(window: Window, queue: int | None) -> list[QueueWindow]:
    return [q for q in window.queues if queue is None or q.index == queue]


def _total(name: str):
    """The sum over the queues."""

    def of(window: Window, queue: int | None) -> float | None:
        found = [value for q in _queues(window, queue) if (value := getattr(q, name)) is not None]
        return sum(found) if found else None

    return of


def _weighted(name: str):
    """The mean over the queues, each as much as it sent: an idle queue has nothing to say."""

    def of(window: Window, queue: int | None) -> float | None:
        found = [(getattr(q, name), q.packets_per_s or 0.0) for q in _queues(window, queue) if getattr(q, name) is not None]
        weight = sum(packets for _, packets in found)
        return sum(value * packets for value, packets in found) / weight if weight else None

    return of


def _worst(name: str):
    """The worst of the queues that were in use."""

    def of(window: Window, queue: int | None) -> float | None:
        found = [getattr(q, name) for q in _queues(window, queue) if not q.idle]
        return max((value for value in found if value is not None), default=None)

    return of


def _root(window: Window) -> QdiscWindow | None:
    return next((qdisc for qdisc in window.qdiscs if qdisc.parent == "root"), None)


def _qdisc(name: str):
    """A rate of the root qdisc, which sums up those below it; of one queue: of the qdisc on it, if it has its own."""

    def of(window: Window, queue: int | None) -> float | None:
        own = next((q for q in window.qdiscs if queue is not None and q.txq == queue), None)
        qdisc = own or _root(window)
        return getattr(qdisc, name) if qdisc else None

    return of


def _polls(window: Window, _queue: int | None) -> float | None:
    return sum(napi.polls_per_s for napi in window.napis) if window.napis else None


def _work(window: Window, _queue: int | None) -> float | None:
    polls = sum(napi.polls_per_s for napi in window.napis)
    return sum(napi.work_per_s for napi in window.napis) / polls if polls else None


FIGURES: tuple[Figure, ...] = (
    Figure("packets", "packets/s", "/s", +1, _total("packets_per_s")),
    Figure("stopped", "stopped", "share", -1, _worst("stopped_share")),
    Figure("requeues", "requeues/s", "/s", -1, _qdisc("requeues_per_s")),
    Figure("polls", "NAPI polls/s", "/s", -1, _polls),
    Figure("work", "work per poll", "packets", +1, _work),
    Figure("inflight_mean", "inflight mean", "queue", 0, _weighted("inflight_mean")),
    Figure("inflight_p99", "inflight p99", "queue", 0, _worst("inflight_p99")),
    Figure("dark_buffer", "dark buffer", "s", -1, _worst("dark_buffer_s")),
    Figure("drops", "qdisc drops/s", "/s", -1, _qdisc("drops_per_s")),
)
