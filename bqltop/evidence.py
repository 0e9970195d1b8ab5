"""What verdicts are made of: their shape, one queue as the rules see it, and the words for its figures. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bqltop import format as fmt
from bqltop.model import QueueSample, Unit
from bqltop.window import NapiWindow, QueueWindow, Window

SEVERE, COSTLY, NOTABLE, CALM = 3, 2, 1, 0


@dataclass(frozen=True, slots=True)
class Verdict:
    """``sentence`` says what is going on, ``detail`` what follows from it. ``kind`` is one word for programs,
    ``evidence`` the figures as (name, value) in the order in which they convince. ``queue`` is the queue it is
    about, where it is about one; ``advice`` names what one might do (None: nothing). Higher ``severity`` first."""

    kind: str
    severity: int
    sentence: str
    detail: str = ""
    evidence: tuple[tuple[str, str], ...] = ()
    queue: int | None = None
    advice: str | None = None
    weight: float = 0.0


@dataclass(frozen=True, slots=True)
class Seen:
    """One queue of a window: its sample, its rates, and how many packets its ring held on average."""

    sample: QueueSample
    window: QueueWindow
    ring: float | None = None

    @property
    def index(self) -> int:
        return self.sample.index

    @property
    def units(self) -> str:
        return "bytes" if self.sample.unit is Unit.BYTES else "packets"

    @property
    def inflight(self) -> str:
        """Inflight against the limit, with the unit: the mean over the transmits where it is known."""
        mean = self.window.inflight_mean
        now = self.sample.inflight if mean is None else mean
        return f"{fmt.count(round(now) if now is not None else None)} of {fmt.count(self.sample.limit)} {self.units}"

    @property
    def ring_share(self) -> float | None:
        return None if self.ring is None or not self.sample.ring_size else self.ring / self.sample.ring_size

    @property
    def dark_buffer_s(self) -> float | None:
        return dark_buffer(self.window, self.ring)


def dark_buffer(window: QueueWindow, ring: float | None) -> float | None:
    """Dark-buffer latency in seconds for a mean occupancy of ``ring`` packets; None where it has no meaning."""
    if ring is None or not window.drained_per_s:
        return window.dark_buffer_s
    return ring / window.drained_per_s


def which_queues(stopped: Sequence[Seen], queues: Sequence[Seen], worst: Seen) -> str:
    if len(stopped) == 1:
        return f"queue {worst.index}"
    return f"{len(stopped)} of {len(queues)} queues, queue {worst.index} most,"


def percent(share: float) -> str:
    """A share in whole percent, since a sentence needs no more; but never 100 where it is not all."""
    return "100 %" if share >= 1 else f"{min(99, round(share * 100))} %"


def where_it_waits(q: Seen) -> str:
    """The wait above and below the queue: measured on sampled packets where it can be, else the ring's estimate."""
    above, below = q.window.qdisc_sojourn_p50_s, q.window.ring_sojourn_p50_s
    if below and above is not None:
        share = below / (above + below)
        both = f"A packet waits {fmt.seconds(above)} in the qdisc and {fmt.seconds(below)} in the ring: "
        if share < 0.5:
            return f"{both}{percent(1 - share)} of the wait is in the qdisc, which can schedule and drop."
        return f"{both}{percent(share)} of the wait is where the qdisc cannot see it."
    wait = below or q.dark_buffer_s
    return f"A packet waits {fmt.seconds(wait)} in the ring, where the qdisc cannot see it." if wait else ""


def as_sentence(text: str | None) -> str:
    """A clause as a sentence of its own, a blank after it; nothing for nothing."""
    return f"{text[0].upper()}{text[1:].rstrip('.')}. " if text else ""


def state_bits(sample: QueueSample) -> str:
    bits = (("DRV_XOFF", sample.drv_xoff), ("STACK_XOFF", sample.stack_xoff), ("FROZEN", sample.frozen))
    return ", ".join(name for name, on in bits if on) or "none"


def root_backlog(window: Window) -> int | None:
    roots = [qdisc for qdisc in window.qdiscs if qdisc.parent == "root"]
    return sum(qdisc.backlog_packets for qdisc in roots) if roots else None


def backlog_text(window: Window) -> str:
    backlog = root_backlog(window)
    return "its backlog is unknown" if backlog is None else f"{fmt.count(backlog)} packet{'' if backlog == 1 else 's'}"


def requeue_rate(window: Window) -> float | None:
    """Requeues of the root qdisc (mq sums its children there), else the driver-busy returns."""
    roots = [qdisc.requeues_per_s for qdisc in window.qdiscs if qdisc.parent == "root"]
    busy = [queue.busy_per_s for queue in window.queues if queue.busy_per_s is not None]
    return sum(roots) if roots else sum(busy) if busy else None


def limit_wait(q: Seen) -> float | None:
    """Seconds that what is inflight takes to complete."""
    done, inflight = q.window.completed_per_s, q.window.inflight_mean or q.sample.inflight
    return inflight / done if done and inflight else None


def work_average(napis: Sequence[NapiWindow]) -> float | None:
    polls = sum(napi.polls_per_s for napi in napis)
    return sum(napi.work_per_s for napi in napis) / polls if polls else None


def work_text(window: Window) -> str:
    average = work_average(window.napis)
    return "-" if average is None else f"{average:.1f} a poll"


def polls_text(window: Window) -> str:
    return fmt.rate(sum(napi.polls_per_s for napi in window.napis)) if window.napis else "-"
