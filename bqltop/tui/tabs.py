"""The line of tabs: every watched device with one figure, the share of the last second it was stopped. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from bqltop.model import Device, Sample

EVERY_NS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Entry:
    """One tab. ``number`` is the key that shows it; ``stopped``: of its worst queue, 0..1."""

    number: int
    device: Device
    shown: bool
    away: bool = False
    stopped: float | None = None


@dataclass(slots=True)
class _Latest:
    sample: Sample
    older: Sample | None = None
    stopped: float | None = None


class Tabs:
    """Keeps a figure a stream, made anew once a second."""

    def __init__(self) -> None:
        self._latest: dict[int, _Latest] = {}

    def take(self, sample: Sample) -> None:
        known = self._latest.setdefault(sample.stream, _Latest(sample))
        known.sample = sample
        older = known.older
        if older is None or older.epoch != sample.epoch or not sample.present:
            known.older, known.stopped = sample if sample.present else None, None
        elif sample.monotonic_ns - older.monotonic_ns >= EVERY_NS or sample.monotonic_ns < older.monotonic_ns:
            known.stopped, known.older = stopped_share(older, sample), sample

    def drop(self, stream: int) -> None:
        self._latest.pop(stream, None)

    def entries(self, streams: Iterable[int], shown: int) -> tuple[Entry, ...]:
        """The tabs in the order of ``streams``."""
        known = [(stream, self._latest[stream]) for stream in streams if stream in self._latest]
        return tuple(
            Entry(number, latest.sample.device, stream == shown, not latest.sample.present, latest.stopped)
            for number, (stream, latest) in enumerate(known, 1)
        )


def stopped_share(older: Sample, newer: Sample) -> float | None:
    """Share of the time between two samples that the worst queue was stopped; None where it is not to be had."""
    passed = newer.monotonic_ns - older.monotonic_ns
    shares = [
        (now.stopped_ns - then.stopped_ns) / passed
        for then, now in zip(older.queues, newer.queues, strict=False)
        if then.stopped_ns is not None and now.stopped_ns is not None
    ]
    return max(0.0, min(1.0, max(shares))) if shares and passed > 0 else None
