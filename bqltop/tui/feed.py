"""Samples in, Frames out: everything between the source and the panels that is not drawing. No Textual in here."""

from __future__ import annotations

from collections import deque

from bqltop.model import Event, Sample
from bqltop.tui.frame import Frame, Smoother
from bqltop.tui.traces import Traces
from bqltop.verdict import Verdict, judge
from bqltop.window import Window

KEPT_EVENTS = 1000
JUDGE_EVERY_NS = 1_000_000_000
"""A sentence that changes ten times a second cannot be read."""
KEPT_WINDOWS = 5


class Feed:
    """Takes every sample, also while drawing is paused, and makes the Frame of the newest state on demand."""

    def __init__(self, description: str = "", read_only: bool = False) -> None:
        self.traces = Traces()
        self.events: deque[Event] = deque(maxlen=KEPT_EVENTS)
        self._description, self._read_only = description, read_only
        self._smoother = Smoother()
        self._sample: Sample | None = None
        self._window: Window | None = None
        self._verdicts: tuple[Verdict, ...] = ()
        self._judged_ns = -JUDGE_EVERY_NS
        self._judged_with_window = False
        self._earlier: deque[Window] = deque(maxlen=KEPT_WINDOWS)

    def take(self, sample: Sample) -> None:
        """Add one sample."""
        came_or_went = self._sample is None or self._sample.present != sample.present
        self._sample = sample
        self._smoother.add(sample)
        self.traces.add(sample)
        self.events.extend(sample.events)
        if came_or_went:
            self._judged_ns = sample.monotonic_ns - JUDGE_EVERY_NS
        if not sample.present or came_or_went:
            self._earlier.clear()

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
        if due or (window is not None and not self._judged_with_window):
            self._verdicts = judge(window, sample, tuple(self._earlier), rings)
            self._judged_ns, self._judged_with_window = sample.monotonic_ns, window is not None
            if window is not None:
                self._earlier.append(window)
        return Frame(sample, self._window, self._verdicts, interval_s, tuple(self.events)[-200:], self._description,
                     self._read_only, rings)
