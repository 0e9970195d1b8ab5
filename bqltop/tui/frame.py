"""What one drawing of the screen shows: the newest sample, the window that ends with it and what follows from both.

Panels are functions of a Frame and a View: nothing else reaches them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

from bqltop.evidence import Verdict, dark_buffer
from bqltop.history import History
from bqltop.model import Event, Probe, QueueSample, Sample
from bqltop.tui.series import DEFAULT_ZOOM, ZOOMS_S
from bqltop.window import QueueWindow, Window, between

SMOOTHING_S = 1.0
"""Rates in the table are over about this long: over a tenth of a second they would be unreadable."""
SORTS = ("queue", "stopped", "inflight", "rate")


@dataclass(frozen=True, slots=True)
class View:
    """What the user chose to see. ``selected`` is a queue's index; None is all queues together. ``zoom`` is an index into
    ZOOMS_S; ``cursor_ns`` the moment looked back at (Sample.monotonic_ns), None for now; ``device`` which of how many
    devices this is; ``badges`` what else the header must say (recording, replaying); ``still``: what is shown is one moment
    of a replay that stands."""

    sort: str = SORTS[0]
    fold_idle: bool = True
    selected: int | None = None
    paused: bool = False
    first_series: int = 0
    zoom: int = DEFAULT_ZOOM
    cursor_ns: int | None = None
    device: tuple[int, int] = (1, 1)
    badges: tuple[str, ...] = ()
    still: bool = False

    @property
    def span_s(self) -> float:
        return ZOOMS_S[self.zoom]


@dataclass(frozen=True, slots=True)
class Frame:
    """Everything the panels draw from. ``window`` is None until two samples can be compared. ``rings``: mean occupancy
    of the rings, where known; ``marks``: when something was changed (CLOCK_REALTIME, ns); ``ago_s``: how long before
    the newest sample this one was taken."""

    sample: Sample
    window: Window | None = None
    verdicts: tuple[Verdict, ...] = ()
    interval_s: float = 0.1
    events: tuple[Event, ...] = ()
    description: str = ""
    read_only: bool = False
    rings: Mapping[int, float] = field(default_factory=dict)
    history: History = field(default_factory=History)
    marks: tuple[int, ...] = ()
    ago_s: float = 0.0

    @property
    def away(self) -> bool:
        return not self.sample.present

    @property
    def missing(self) -> tuple[Probe, ...]:
        """Probes that are not in force: what is not shown, and what to type to see it."""
        return tuple(probe for probe in self.sample.probes if not probe.in_force)

    @property
    def sees_state(self) -> bool:
        """Whether the queues' state words can be read (they need eBPF)."""
        return any(queue.drv_xoff is not None for queue in self.sample.queues)


@dataclass(slots=True)
class Smoother:
    """The last second of samples, to take the table's window from: rates over ``SMOOTHING_S``, drawn at any rate."""

    seconds: float = SMOOTHING_S
    _samples: deque[Sample] = field(default_factory=deque)

    def add(self, sample: Sample) -> None:
        """Keep ``sample``; forget those that are no longer needed. A new attachment or a device away starts anew."""
        samples = self._samples
        if samples and (samples[-1].epoch != sample.epoch or not sample.present
                        or sample.monotonic_ns <= samples[-1].monotonic_ns):
            samples.clear()
        if not sample.present:
            return
        samples.append(sample)
        oldest_wanted = sample.monotonic_ns - int(self.seconds * 1e9)
        while len(samples) > 2 and samples[1].monotonic_ns <= oldest_wanted:
            samples.popleft()

    def window(self) -> Window | None:
        """From about a second ago to the newest sample; None while there is only one."""
        return between(self._samples[0], self._samples[-1]) if len(self._samples) > 1 else None

    def rings(self) -> dict[int, float]:
        """Mean occupancy of each queue's ring over the window's looks. Under bursts a ring is full at one look and
        empty at the next: the mean is what a packet meets."""
        looks = [{queue.index: queue.ring_used for queue in sample.queues} for sample in list(self._samples)[1:]]
        means = {}
        for index in looks[-1] if looks else ():
            used = [value for look in looks if (value := look.get(index)) is not None]
            if used:
                means[index] = sum(used) / len(used)
        return means


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the queue table: a queue's sample, its window where there is one, and its ring's mean occupancy."""

    sample: QueueSample
    window: QueueWindow
    ring: float | None = None

    @property
    def dark_buffer_s(self) -> float | None:
        """Seconds a packet waits in the ring, from the mean occupancy."""
        return dark_buffer(self.window, self.ring)


def rows(frame: Frame, view: View) -> tuple[list[Row], list[int]]:
    """The table's rows in the chosen order and the indices of idle queues that were folded away.

    A stopped queue, one with something inflight or in its ring and one whose watchdog fired are never folded, nor
    the selected one; and folding must save lines: one idle queue stays.
    """
    windows = {w.index: w for w in frame.window.queues} if frame.window else {}
    all_rows = [
        Row(q, windows.get(q.index) or QueueWindow(q.index, q.unit), frame.rings.get(q.index, q.ring_used))
        for q in frame.sample.queues
    ]
    folded: list[int] = []
    if view.fold_idle and frame.window and len(all_rows) > 2:
        quiet = {row.sample.index for row in all_rows if _quiet(row) and row.sample.index != view.selected}
        if 1 < len(quiet) < len(all_rows):
            folded = sorted(quiet)
            all_rows = [row for row in all_rows if row.sample.index not in quiet]
    if view.sort != "queue":
        key = _SORT_KEYS[view.sort]
        all_rows.sort(key=lambda row: (-(key(row) or 0), row.sample.index))
    return all_rows, folded


def _quiet(row: Row) -> bool:
    sample = row.sample
    return row.window.packets_per_s is not None and row.window.idle and not (
        sample.stopped or sample.inflight or sample.ring_used or row.window.tx_timeouts
    )


_SORT_KEYS = {
    "stopped": lambda row: row.window.stopped_share,
    "inflight": lambda row: row.sample.inflight if row.sample.inflight is not None else row.sample.ring_used,
    "rate": lambda row: row.window.packets_per_s,
}
