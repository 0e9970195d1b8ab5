"""A source that records what passes through it, with the events found on the way."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from bqltop.eventlog import Detector
from bqltop.model import Event, Sample
from bqltop.recording.writer import Recorder


class Recorded:
    """Hands on ``source``'s samples unchanged and gives them to ``recorder``, each after the events that were found in it.

    ``tell`` is called once, with one line, when the recording stops by itself (a full disk). ``settings`` False: somebody
    else tells of every changed setting (``event``), and a change is never told twice. Everything else (``interval``,
    ``description``, ``close``) is the source's own.
    """

    def __init__(self, source, recorder: Recorder, tell: Callable[[str], object] = lambda line: None,
                 settings: bool = True) -> None:
        self.source, self.recorder, self.settings = source, recorder, settings
        self._tell, self._told = tell, False
        self._detectors: dict[int, Detector] = {}

    def __getattr__(self, name: str):
        return getattr(self.source, name)

    @property
    def interval(self) -> float:
        return self.source.interval

    @interval.setter
    def interval(self, seconds: float) -> None:
        self.source.interval = seconds

    def event(self, event: Event, stream: int = 0) -> None:
        """Record an event of a device that only the caller knows of. Who tells of one setting tells of all: from then on
        changed settings are not looked for here."""
        if event.kind == "setting":
            self.settings = False
        self._record(event, stream)

    def _record(self, event: Event, stream: int) -> None:
        """Which device's it is need not be said where there is but one."""
        self.recorder.event(event, stream if stream or len(self._detectors) > 1 else None)

    def every(self, interval_s: float | None = None) -> Iterator[Sample]:
        for sample in self.source.every(interval_s):
            self.take(sample)
            yield sample

    def take(self, sample: Sample) -> None:
        """Record a sample and the events found in it."""
        detector = self._detectors.setdefault(sample.stream, Detector())
        detector.settings = self.settings
        for event in detector.feed(sample):
            if event not in sample.events:
                self._record(event, sample.stream)
        self.recorder.sample(sample)
        self.tell_failure()

    def tell_failure(self) -> None:
        """Say, once, that the recording has failed; also after its end, which is the last thing that can."""
        if self.recorder.failure and not self._told:
            self._told = True
            self._tell(self.recorder.failure)
