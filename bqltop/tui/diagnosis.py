"""What bqltop itself does, from its own samples: instants planned and kept, time and memory used. Pure."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from bqltop.model import Sample, SelfSample

KEPT = 600
OVER_S = 10.0


@dataclass(frozen=True, slots=True)
class Spread:
    """Half, 99 % and all of the values are at most this."""

    p50: float
    p99: float
    highest: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread | None:
        if not values:
            return None
        ordered = sorted(values)
        return cls(ordered[len(ordered) // 2], ordered[min(len(ordered) - 1, len(ordered) * 99 // 100)], ordered[-1])


@dataclass(frozen=True, slots=True)
class Figures:
    """``taken``: samples the figures are made from; ``late``/``read``/``between`` in ns; ``cpu_share`` and ``bpf_share`` of
    one CPU over the last ten seconds; ``bpf_ns_per_run``: mean of the same time."""

    taken: int
    missed: int
    missed_lately: int
    late: Spread | None
    read: Spread | None
    between: Spread | None
    cpu_share: float | None
    rss_bytes: int | None
    rss_most: int | None
    bpf_share: float | None = None
    bpf_runs_per_s: float | None = None
    bpf_ns_per_run: float | None = None


class Diagnosis:
    """The last samples' own costs, of the device on the screen."""

    def __init__(self) -> None:
        self._kept: deque[tuple[int, int, SelfSample]] = deque(maxlen=KEPT)

    def take(self, sample: Sample) -> None:
        if sample.own is None:
            return
        if self._kept and sample.monotonic_ns <= self._kept[-1][0]:
            self._kept.clear()  # another device, or another time of a replay
        self._kept.append((sample.monotonic_ns, sample.epoch, sample.own))

    def clear(self) -> None:
        self._kept.clear()

    def figures(self) -> Figures | None:
        """None before the first sample."""
        if not self._kept:
            return None
        kept = list(self._kept)
        newest_ns, _, newest = kept[-1]
        lately = [entry for entry in kept if newest_ns - entry[0] <= OVER_S * 1e9]
        seconds = (newest_ns - lately[0][0]) / 1e9
        owns = [own for _, _, own in kept]
        return Figures(
            taken=len(kept),
            missed=newest.missed,
            missed_lately=newest.missed - owns[0].missed,
            late=Spread.of([own.late_ns for own in owns]),
            read=Spread.of([own.read_ns for own in owns]),
            between=Spread.of([b[0] - a[0] for a, b in itertools.pairwise(kept)]),
            cpu_share=(newest.cpu_s - lately[0][2].cpu_s) / seconds if seconds else None,
            rss_bytes=newest.rss_bytes,
            rss_most=max(own.rss_bytes for own in owns),
            **_programs(lately),
        )


def _programs(lately: Sequence[tuple[int, int, SelfSample]]) -> dict[str, float | None]:
    """What the eBPF programs cost between the first and the last sample that have the kernel's account of one epoch."""
    known = [entry for entry in lately if entry[2].bpf_ns is not None and entry[1] == lately[-1][1]]
    if len(known) < 2:
        return {}
    (first_ns, _, first), (last_ns, _, last) = known[0], known[-1]
    seconds = (last_ns - first_ns) / 1e9
    spent, runs = last.bpf_ns - first.bpf_ns, last.bpf_runs - first.bpf_runs
    if seconds <= 0 or spent < 0:
        return {}
    per_run = spent / runs if runs else None
    return {"bpf_share": spent / 1e9 / seconds, "bpf_runs_per_s": runs / seconds, "bpf_ns_per_run": per_run}
