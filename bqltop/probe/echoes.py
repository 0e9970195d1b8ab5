"""What became of the echoes: matching requests, kernel timestamps and replies, and the figures of a span. Pure."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bqltop.model import ProbeSample

KEEP_S = 60.0
"""Span of the figures of a sample."""
LONGEST_QDISC_NS = 60_000_000_000


@dataclass(frozen=True, slots=True)
class Echo:
    """One request. ``sent_ns`` is CLOCK_MONOTONIC; ``rtt_ns`` None: no reply in time. ``qdisc_ns``: its wait in the
    qdisc, None where the kernel did not tell."""

    sent_ns: int
    rtt_ns: int | None
    qdisc_ns: int | None = None


@dataclass(slots=True)
class _Pending:
    sent_ns: int
    scheduled: int | None = None
    driver: int | None = None


class Echoes:
    """Requests under way and the results so far. ``timeout_ns``: without a reply for so long a request is lost."""

    def __init__(self, timeout_ns: int):
        self._timeout = timeout_ns
        self._pending: OrderedDict[int, _Pending] = OrderedDict()
        self._recent: deque[Echo] = deque()
        self.sent = self.received = self.lost = 0

    def request(self, sequence: int, now_ns: int) -> None:
        """A request is about to go out."""
        self.sent += 1
        self._pending[sequence] = _Pending(now_ns)

    def stamp(self, sequence: int, time_ns: int, scheduled: bool) -> None:
        """The kernel says when a request was handed to the qdisc, or to the driver: to a full ring it is handed more
        than once, and the last time counts."""
        pending = self._pending.get(sequence)
        if pending is None:
            return
        if scheduled:
            pending.scheduled = time_ns
        else:
            pending.driver = time_ns

    def reply(self, sequence: int, now_ns: int, received_ns: int | None) -> Echo | None:
        """A reply came. ``received_ns``: the kernel's time of it, of the clock of ``stamp``. The kernel's own times are
        taken where they are plausible: its clock may be set in between. None: a reply that came too late, or twice."""
        pending = self._pending.pop(sequence, None)
        if pending is None:
            return None
        ours = now_ns - pending.sent_ns
        rtt = ours
        if received_ns is not None and pending.scheduled is not None:
            kernel = received_ns - pending.scheduled
            rtt = kernel if 0 < kernel <= ours else ours
        self.received += 1
        return self._finish(Echo(pending.sent_ns, rtt, _qdisc(pending)))

    def expire(self, now_ns: int) -> int:
        """Give up requests that are too old; how many."""
        late = [seq for seq, pending in self._pending.items() if now_ns - pending.sent_ns > self._timeout]
        for sequence in late:
            pending = self._pending.pop(sequence)
            self.lost += 1
            self._finish(Echo(pending.sent_ns, None, _qdisc(pending)))
        while self._recent and now_ns - self._recent[0].sent_ns > KEEP_S * 1e9:
            self._recent.popleft()
        return len(late)

    def _finish(self, echo: Echo) -> Echo:
        self._recent.append(echo)
        return echo

    def since(self, monotonic_ns: int) -> list[Echo]:
        """Finished echoes that were sent at or after this moment, within the last KEEP_S."""
        return [echo for echo in self._recent if echo.sent_ns >= monotonic_ns]

    def sample(self, address: str, error: str | None = None) -> ProbeSample:
        """The figures of the last KEEP_S."""
        trips = sorted(echo.rtt_ns for echo in self._recent if echo.rtt_ns is not None)
        waits = sorted(echo.qdisc_ns for echo in self._recent if echo.qdisc_ns is not None)
        last = next((echo for echo in reversed(self._recent) if echo.rtt_ns is not None), None)
        return ProbeSample(
            address=address,
            sent=self.sent,
            received=self.received,
            lost=self.lost,
            rtt_last_ns=last.rtt_ns if last else None,
            rtt_min_ns=trips[0] if trips else None,
            rtt_avg_ns=average(trips),
            rtt_p50_ns=quantile(trips, 0.50),
            rtt_p99_ns=quantile(trips, 0.99),
            rtt_max_ns=trips[-1] if trips else None,
            qdisc_last_ns=last.qdisc_ns if last else None,
            qdisc_avg_ns=average(waits),
            qdisc_p99_ns=quantile(waits, 0.99),
            error=error,
        )


def _qdisc(pending: _Pending) -> int | None:
    if pending.scheduled is None or pending.driver is None:
        return None
    wait = pending.driver - pending.scheduled
    return wait if 0 <= wait < LONGEST_QDISC_NS else None


def average(values: Iterable[int]) -> int | None:
    """Mean, rounded; None of nothing."""
    values = list(values)
    return round(sum(values) / len(values)) if values else None


def quantile(ordered: Sequence[int], share: float) -> int | None:
    """The smallest value that at least ``share`` of the ordered values do not exceed (nearest rank); None of nothing."""
    if not ordered:
        return None
    rank = -(-len(ordered) * round(share * 10_000) // 10_000)
    return ordered[max(0, min(len(ordered), rank) - 1)]
