"""Replays: the keys that play, stop, step and seek, as on a tape deck. No Textual in here."""

from __future__ import annotations

from collections.abc import Callable

from bqltop.model import Event, Sample
from bqltop.recording.replay import JUMP_EPOCH, MAX_SPEED, Replay

BADGE = "REPLAY"
SPEEDS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, MAX_SPEED)


class Tape:
    """``say`` shows one line for a moment."""

    def __init__(self, replay: Replay, say: Callable[[str], object]) -> None:
        self.replay = replay
        self._say = say
        self._jumps = 0
        self._charted_from = 0
        self._noticed: str | None = None

    @property
    def still(self) -> bool:
        """Whether it shows one moment: nothing moves by itself."""
        return self.replay.paused or self.replay.at_end

    def toggle(self) -> None:
        """Stop, or go on (at the end: from the beginning)."""
        if self.still:
            self.replay.resume()
        else:
            self.replay.pause()

    def step(self, samples: int) -> None:
        self.replay.step(samples)

    def by(self, seconds: float) -> None:
        self.replay.seek_by(seconds)

    def event(self, direction: int) -> None:
        """To the next sample with an event, or the one before."""
        found = self.replay.next_event() if direction > 0 else self.replay.previous_event()
        if not found:
            self._say(f"no event {'after' if direction > 0 else 'before'} this one")

    def faster(self, steps: int) -> None:
        nearest = min(range(len(SPEEDS)), key=lambda n: abs(SPEEDS[n] - (self.replay.speed or MAX_SPEED)))
        self.replay.speed = SPEEDS[max(0, min(len(SPEEDS) - 1, nearest + steps))]

    def jumped(self, sample: Sample) -> bool:
        """Whether a jump lies between the sample before and this one: the past on the chart is another one then."""
        jumps = sample.epoch // JUMP_EPOCH
        changed, self._jumps = jumps != self._jumps, jumps
        return changed

    def past(self, span_s: float) -> dict[int, tuple[list[Sample], list[Event]]]:
        """After a jump: the samples of a chart's span and the events before the place it jumped to, of every device that there
        is something of."""
        replay, landed = self.replay, self.replay.landed
        self._charted_from = replay.since(span_s, landed)
        found: dict[int, tuple[list[Sample], list[Event]]] = {stream: ([], []) for stream in replay.streams_at(landed)}
        for sample in replay.samples(self._charted_from, landed):
            found.setdefault(sample.stream, ([], []))[0].append(sample)
        for stream, event in replay.events_before(landed):
            if stream in found:
                found[stream][1].append(event)
        return found

    def earlier(self, span_s: float) -> list[Sample]:
        """What a chart of a longer span lacks: the samples from before those that were had so far."""
        first, had = self.replay.since(span_s, self.replay.position), self._charted_from
        self._charted_from = min(first, had)
        return self.replay.samples(first, had) if first < had else []

    def look(self) -> None:
        """Say what the replay itself has to say, once: a recording that was cut off, a line that cannot be read."""
        if self.replay.notice and self.replay.notice != self._noticed:
            self._noticed = self.replay.notice
            self._say(self._noticed)

    @property
    def badges(self) -> tuple[str, ...]:
        """For the header: where we are, how fast."""
        elapsed = self.replay.elapsed
        here = elapsed[max(0, self.replay.position)]
        speed = "" if self.replay.speed in (None, 1.0) else f" {self.replay.speed:g}x"
        place = f"{BADGE}{speed} {_clock(here)}/{_clock(elapsed[-1])}"
        state = "END" if self.replay.at_end else "PAUSED" if self.replay.paused else ""
        return (place, state) if state else (place,)


def _clock(nanoseconds: int) -> str:
    """3:07, 1:02:33: a place on a tape."""
    whole = max(0, round(nanoseconds / 1e9))
    hours, rest = divmod(whole, 3600)
    text = f"{rest // 60:02d}:{rest % 60:02d}"
    return f"{hours}:{text}" if hours else text


