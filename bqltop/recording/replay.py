"""Playing a recording: a source of Samples like the live one, with a tape deck's keys.

``every`` is run by one thread and waits as the recorded time passes; ``pause``, ``step``, ``seek`` and the others may be
called from any other thread and take effect at once.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise

from bqltop.model import Event, Sample
from bqltop.recording.errors import RecordingError
from bqltop.recording.reader import Recording
from bqltop.recording.when import Timeline

MIN_SPEED, MAX_SPEED = 0.1, 100.0
MIN_SPACING_S = 0.05
"""Shortest time between two samples handed out: at 100x most of them are skipped, which costs nothing but detail,
because counters are cumulative and the events of the skipped ones are kept."""
MAX_GAP_S = 5.0
"""Longest recorded gap that is waited through (the recorder was stopped, a file holds two recordings)."""
REWIND_S = 1.5
"""While it plays, an event that was shown so short a time ago is not "the event before"."""
JUMP_EPOCH = 1_000_000
"""Added to the epoch at every jump: a window must never span one."""


class Replay:
    """A source of Samples from a file. ``speed`` is 0.1 to 100, or None for as fast as they can be read (for
    reports and pipes). ``loop`` begins again at the end, ``hold`` waits there (for a screen) instead of ending.

    A position is a moment: one sample, or one of each device where several were recorded. ``paused``, ``position`` (of
    the moment shown last, -1 before the first), ``landed`` (of the first one shown after the last jump), ``at_end`` and
    ``notice`` tell the state.
    Raises RecordingError as Recording does. A sample further on that cannot be decoded ends the replay; ``notice`` says
    so.
    """

    def __init__(self, path: str | os.PathLike, *, speed: float | None = 1.0, loop: bool = False, hold: bool = False,
                 clock: Callable[[], float] = time.monotonic) -> None:
        self.recording = Recording(path)
        recorded, moments = self.recording.timeline, self.recording.moments
        self.times = array("q", (self.recording.times[number] for number in moments))
        self.walls = array("q", (recorded.walls[number] for number in moments))
        self.elapsed = array("q", (recorded.elapsed[number] for number in moments))
        self.marks = array("L", sorted({bisect_right(moments, mark) - 1 for mark in self.recording.marks}))
        self.interval = self._recorded_interval()
        self.description = f"replay of {os.fspath(path)}"
        self.notice = self.recording.notice
        self.loop, self.hold = loop, hold
        self.position = -1
        self.paused = False
        self._speed = None if speed is None else min(MAX_SPEED, max(MIN_SPEED, speed))
        self._clock = clock
        self._change = threading.Condition()
        self._steps = 0
        self._jump: int | None = None
        self._jumps = 0
        self.landed = 0
        self._shown_at: float | None = None
        self._closed = False

    def _recorded_interval(self) -> float:
        """Seconds between two samples as they were recorded: the middle one of the first gaps, in whole hundredths."""
        first = self.elapsed[:200]
        gaps = sorted(b - a for a, b in pairwise(first))
        return max(0.01, round(gaps[len(gaps) // 2] / 1e9, 2)) if gaps else 0.1

    # ---- what is in it

    @property
    def device(self):
        """The device as the recording begins."""
        return self.recording.device

    @property
    def header(self) -> dict:
        """The file's header line; ``header.get("about")`` is what the recorder was told."""
        return self.recording.header

    @property
    def span(self) -> tuple[int, int]:
        """Wall-clock ns of the first and the last sample."""
        return self.times[0], self.times[-1]

    @property
    def timeline(self) -> Timeline:
        """When the moments were."""
        return Timeline(self.walls, self.elapsed)

    @property
    def at_end(self) -> bool:
        return self.position >= len(self.times) - 1

    def since(self, seconds: float, moment: int) -> int:
        """The first moment within so many seconds before another."""
        return bisect_left(self.elapsed, self.elapsed[max(0, moment)] - int(seconds * 1e9), 0, max(0, moment))

    def samples(self, first: int, last: int, most: int | None = None) -> list[Sample]:
        """The samples of moments first..last-1, at most so many of a device, evenly thinned: to fill charts. Of more queues
        fewer: each takes its time to read. What cannot be read is left out, and ``notice`` says so."""
        with self._change:
            jumps = self._jumps
        most = most or max(150, 2400 // max(1, len(self.recording.first.queues)))
        stride = max(1, -(-(last - first) // most))
        numbers = (number for moment in range(first, last, stride) for number in self._numbers(moment))
        return [self._with_epoch(sample, jumps) for sample in map(self._readable, numbers) if sample is not None]

    def _readable(self, number: int) -> Sample | None:
        try:
            return self.recording.sample(number)
        except RecordingError as error:
            self.notice = self.notice if self._closed else str(error)
            return None

    def events_before(self, moment: int, most: int = 300) -> list[tuple[int, Event]]:
        """The last events before a moment, each with its device's number."""
        found: list[tuple[int, Event]] = []
        for mark in self.marks[: bisect_left(self.marks, max(0, moment))][-most:]:
            for number in self._numbers(mark):
                with contextlib.suppress(RecordingError):
                    found += ((self.recording.stream_of[number], event) for event in self.recording.events(number))
        return found

    def streams_at(self, moment: int) -> set[int]:
        """The devices that there are samples of at a moment."""
        return {self.recording.stream_of[number] for number in self._numbers(moment)}

    # ---- keys

    @property
    def speed(self) -> float | None:
        return self._speed

    @speed.setter
    def speed(self, value: float | None) -> None:
        with self._change:
            self._speed = None if value is None else min(MAX_SPEED, max(MIN_SPEED, value))
            self._change.notify_all()

    def pause(self) -> None:
        with self._change:
            self.paused = True
            self._change.notify_all()

    def resume(self) -> None:
        """Go on; at the end of a held recording, begin again."""
        with self._change:
            self.paused = False
            self._shown_at = None
            if self.at_end and self.hold:
                self._jump = 0
            self._change.notify_all()

    def step(self, samples: int = 1) -> None:
        """Pause and go on by so many samples; back for a negative number."""
        with self._change:
            self.paused = True
            if samples < 0:
                self._jump = max(0, self.position + samples)
            else:
                self._steps += samples
            self._change.notify_all()

    def seek(self, time_ns: int) -> None:
        """Go to the last sample not after a wall-clock time."""
        self.seek_to(bisect_right(self.times, time_ns) - 1)

    def seek_by(self, seconds: float) -> None:
        """Go forward or back by so many recorded seconds, and by one moment at least."""
        here = max(0, self.position)
        there = bisect_right(self.elapsed, self.elapsed[here] + int(seconds * 1e9)) - 1
        self.seek_to(here + (1 if seconds > 0 else -1) if there == here else there)

    def seek_to(self, number: int) -> None:
        """Go to the moment of that number; out of range means the first or the last."""
        with self._change:
            self._jump = min(max(0, number), len(self.times) - 1)
            self._change.notify_all()

    def next_event(self) -> bool:
        """Go to the next sample with an event; False where there is none."""
        marks = self.marks
        found = bisect_right(marks, max(0, self.position))
        if found == len(marks):
            return False
        self.seek_to(marks[found])
        return True

    def previous_event(self) -> bool:
        """Go to the last sample with an event before the present one; False where there is none. A replay that is playing
        has gone on since the last such jump: what it has just played does not count."""
        marks, here = self.marks, max(0, self.position)
        if not self.paused and not self.at_end:
            played_ns = int(REWIND_S * (self._speed or 1) * 1e9)
            here = bisect_left(self.elapsed, self.elapsed[here] - played_ns, 0, here)
        found = bisect_left(marks, here) - 1
        if found < 0:
            return False
        self.seek_to(marks[found])
        return True

    def close(self) -> None:
        """End ``every`` in whichever thread it runs."""
        with self._change:
            self._closed = True
            self._change.notify_all()
        self.recording.close()

    def __enter__(self) -> Replay:
        return self

    def __exit__(self, *_exception) -> None:
        self.close()

    # ---- the tape

    def every(self, interval_s: float | None = None) -> Iterator[Sample]:
        """Samples as time passes, at least ``interval_s`` (else ``interval``, at first as recorded) of recorded time apart; 0
        is all there are. The first comes at once. After a jump the sample before the target comes first, so that the
        target has a window."""
        self.interval = self.interval if interval_s is None else interval_s
        try:
            while (move := self._next()) is not None:
                first, last, jumps = move
                for sample in self._merged(first, last):
                    yield self._with_epoch(sample, jumps)
        except RecordingError as error:
            self.notice = self.notice if self._closed else str(error)

    def _with_epoch(self, sample: Sample, jumps: int) -> Sample:
        """With the number of jumps in its epoch, where a file cannot have put one."""
        epoch = sample.epoch % JUMP_EPOCH + jumps * JUMP_EPOCH
        return sample if epoch == sample.epoch else replace(sample, epoch=epoch)

    def _numbers(self, moment: int) -> range:
        """The numbers of a moment's samples."""
        moments = self.recording.moments
        return range(moments[moment], moments[moment + 1] if moment + 1 < len(moments) else len(self.recording))

    def _merged(self, first: int, last: int) -> list[Sample]:
        """The samples of moment ``last`` with the events of those from ``first`` on that were skipped."""
        samples = [self.recording.sample(number) for number in self._numbers(last)]
        skipped: dict[int, list[Event]] = {}
        for mark in self.marks[bisect_left(self.marks, first) : bisect_left(self.marks, last)]:
            for number in self._numbers(mark):
                sample = self.recording.sample(number)
                skipped.setdefault(sample.stream, []).extend(sample.events)
        return [replace(s, events=(*skipped[s.stream], *s.events)) if s.stream in skipped else s for s in samples]

    def _next(self) -> tuple[int, int, int] | None:
        """Wait for the next moment's time: (first, last, jumps) where first..last-1 are skipped; None at the end."""
        with self._change:
            while not self._closed:
                if self._jump is not None:
                    return self._jumped()
                if self.position < 0:
                    return self._show(0, 0)
                if self.at_end:
                    if self.loop and not self.paused:
                        self._jump = 0
                        continue
                    if not self.hold:
                        return None
                    self._steps = 0
                    self._change.wait()
                    continue
                if self._steps:
                    self._steps -= 1
                    return self._show(self.position + 1, self.position + 1)
                if self.paused:
                    self._change.wait()
                    continue
                target = self._target()
                wait = self._wait_for(target)
                if wait <= 0:
                    return self._show(self.position + 1, target)
                self._change.wait(wait)
        return None

    def _show(self, first: int, last: int) -> tuple[int, int, int]:
        self.position = last
        self._shown_at = self._clock()
        return first, last, self._jumps

    def _jumped(self) -> tuple[int, int, int]:
        """Go to the sample before the target, and let the next round step onto it."""
        target, self._jump = self._jump, None
        self._jumps += 1
        self.landed = max(0, target - 1)
        if target:
            self._steps = 1
        return self._show(self.landed, self.landed)

    def _target(self) -> int:
        """The moment to show next: far enough from the present one in recorded and, at this speed, in real time."""
        spacing = self.interval
        if self._speed is not None:
            spacing = max(spacing, MIN_SPACING_S * self._speed if self._speed > 1 else 0.0)
        elapsed = self.elapsed
        # a little early is on time: samples come a few microseconds before or after their planned instant
        wanted = elapsed[self.position] + int(spacing * 1e9 * 0.95)
        return min(max(self.position + 1, bisect_left(elapsed, wanted)), len(elapsed) - 1)

    def _wait_for(self, target: int) -> float:
        """Seconds until that moment is due."""
        if self._speed is None or self._shown_at is None:
            return 0.0
        gap = min(MAX_GAP_S, (self.elapsed[target] - self.elapsed[self.position]) / 1e9)
        return self._shown_at + gap / self._speed - self._clock()
