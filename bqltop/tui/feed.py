"""Samples in, Frames out: everything between the source and the panels that is not drawing. No Textual in here."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable

from bqltop.eventlog import Detector, EventLog, Retold
from bqltop.history import History
from bqltop.model import Event, Sample
from bqltop.tui.frame import SMOOTHING_S, Frame, Smoother
from bqltop.verdict import Verdict, judge
from bqltop.window import Window, between

SHOWN_EVENTS = 200
JUDGE_EVERY_NS = 500_000_000
"""A sentence that changes ten times a second cannot be read; one that is older contradicts the table below it."""
KEPT_WINDOWS = 10


class Feed:
    """One device's samples: takes every one, also while drawing is paused, and makes the Frame of the newest state, or
    of a moment in the past. ``tell`` is told of events that others knew of (a recording wants them).
    ``finder`` finds the events in the samples."""

    def __init__(self, description: str = "", read_only: bool = False, finder: Detector | Retold | None = None,
                 tell: Callable[[Event], object] = lambda event: None) -> None:
        self.history = History()
        self.log = EventLog()
        self.marks: list[int] = []
        """When something was changed (CLOCK_REALTIME, ns), for the chart."""
        self.taken = 0
        self._description, self._read_only, self._tell = description, read_only, tell
        self._smoother = Smoother()
        self._finder = finder or Detector()
        self._sample: Sample | None = None
        self._window: Window | None = None
        self._verdicts: tuple[Verdict, ...] = ()
        self._judged_ns = -JUDGE_EVERY_NS
        self._judged_with_window = False
        self._earlier: deque[Window] = deque(maxlen=KEPT_WINDOWS)

    @property
    def events(self) -> list[Event]:
        """What has happened so far, oldest first."""
        return list(self.log)

    @property
    def sample(self) -> Sample | None:
        """The newest sample."""
        return self._sample

    def take(self, sample: Sample) -> None:
        """Add one sample."""
        came_or_went = self._sample is None or self._sample.present != sample.present
        self.taken += 1
        self._keep(sample)
        self._log(self._finder.feed(sample))
        if came_or_went:
            self._judged_ns = sample.monotonic_ns - JUDGE_EVERY_NS
        if not sample.present or came_or_went:
            self._earlier.clear()

    def refill(self, samples: Iterable[Sample]) -> None:
        """Another past: that of the place in a recording to which a replay has jumped."""
        self.history, self._smoother = History(), Smoother()
        for sample in samples:
            self._keep(sample)

    def _keep(self, sample: Sample) -> None:
        self._sample = sample
        self._smoother.add(sample)
        if sample.present:
            self.history.add(sample)

    def reach_back(self, samples: Iterable[Sample]) -> None:
        """More of the past, from before what there is."""
        older = History()
        for sample in samples:
            if sample.present:
                older.add(sample)
        self.history.precede(older)

    def retell(self, events: Iterable[Event], until_ns: int) -> None:
        """Other events: those before the place to which a replay has jumped. Where they are not in the file but found in the
        samples, those found before that moment (CLOCK_REALTIME) stay."""
        kept = () if isinstance(self._finder, Retold) else [event for event in self.log if event.time_ns < until_ns]
        self.log, self.marks = EventLog(), []
        self._log(sorted({*kept, *events}, key=lambda event: event.time_ns))

    def _log(self, events: Iterable[Event]) -> None:
        self.marks.extend(event.time_ns for event in self.log.add(events) if event.kind == "setting")

    def note(self, events: Iterable[Event], marked: bool = False) -> None:
        """Add events that others know of (the tuner); ``marked`` ones stand on the chart's time axis too."""
        events = self.log.add(events)
        for event in events:
            self._tell(event)
        if marked:
            self.marks.extend(event.time_ns for event in events)

    def frame(self, interval_s: float) -> Frame | None:
        """What to draw now; None before the first sample. While the device is away the last window stays."""
        sample = self._sample
        if sample is None:
            return None
        window = self._smoother.window()
        if window is not None or sample.present:
            self._window = window
        rings = self._smoother.rings() if sample.present else {}
        due = sample.monotonic_ns - self._judged_ns >= JUDGE_EVERY_NS
        if due or sample.monotonic_ns < self._judged_ns or (window is not None and not self._judged_with_window):
            self._verdicts = judge(window, sample, tuple(self._earlier), rings)
            self._judged_ns, self._judged_with_window = sample.monotonic_ns, window is not None
            if window is not None:
                self._earlier.append(window)
        return self._frame(sample, self._window, self._verdicts, interval_s, rings, tuple(self.log)[-SHOWN_EVENTS:])

    def frame_at(self, moment_ns: int, interval_s: float) -> Frame | None:
        """The state at a moment of the history (Sample.monotonic_ns); None while there is no history."""
        found = self.history.at(moment_ns)
        if found is None:
            return None
        sample, window = found
        earlier = self.history.at(sample.monotonic_ns - int(SMOOTHING_S * 1e9))
        if earlier is not None:
            window = between(earlier[0], sample) or window
        events = self.log.filter(end_ns=sample.time_ns)[-SHOWN_EVENTS:]
        return self._frame(sample, window, judge(window, sample), interval_s, {}, tuple(events))

    def _frame(self, sample, window, verdicts, interval_s, rings, events) -> Frame:
        newest = self._sample.monotonic_ns if self._sample else sample.monotonic_ns
        return Frame(sample, window, verdicts, interval_s, events, self._description, self._read_only, rings,
                     self.history, tuple(self.marks), max(0.0, (newest - sample.monotonic_ns) / 1e9))
