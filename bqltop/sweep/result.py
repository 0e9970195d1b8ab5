"""From trials to an answer: medians over the runs, Pareto-best settings, one recommended with its reason. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bqltop.sweep.figures import BY_ID, FIGURES, Measured
from bqltop.sweep.plan import AS_IT_WAS, Setting, label
from bqltop.tuning.effect import ALPHA, FEWEST_SECONDS, mann_whitney, median

LATENCIES = ("rtt_avg_s", "ring_p50_s", "dark_buffer_s", "qdisc_p50_s")
"""What latency means, the first that every setting has: the round trip where it was probed, else the wait in the ring."""
NEARLY = 0.97
"""A setting keeps up when it carries at least this share of the packets of the fastest."""
SAME = 0.03
"""Two values within this share of each other count as equal: less is not worth a setting."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One setting tried once. ``measured`` None: nothing came of it, ``trouble`` says why."""

    setting: Setting
    run: int
    measured: Measured | None = None
    trouble: str | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """One setting over all its runs: medians of its figures. ``runs``: how many were measured. ``best``: no other
    setting is better in one of packets/s and latency without being worse in the other."""

    setting: Setting
    figures: dict[str, float | None]
    runs: int
    trouble: str | None = None
    best: bool = False

    @property
    def label(self) -> str:
        return label(self.setting)


@dataclass(frozen=True, slots=True)
class Recommendation:
    """``setting`` None: nothing to recommend; ``reason`` says why in either case."""

    setting: Setting | None
    reason: str


@dataclass(frozen=True, slots=True)
class Result:
    """``latency``: the id of the figure that stands for latency; None where there was none."""

    rows: tuple[Row, ...]
    latency: str | None
    recommendation: Recommendation


def summarise(settings: Sequence[Setting], trials: Sequence[Trial]) -> Result:
    """The answer that the trials so far give; settings never tried have a row without figures."""
    rows = [_row(setting, [trial for trial in trials if trial.setting == setting]) for setting in settings]
    measured = [row for row in rows if row.runs]
    latency = next((id for id in LATENCIES if measured and all(row.figures[id] is not None for row in measured)), None)
    best = pareto(measured, latency)
    rows = [Row(row.setting, row.figures, row.runs, row.trouble, row.setting in best) for row in rows]
    return Result(tuple(rows), latency, recommend(rows, latency, trials))


def _row(setting: Setting, trials: Sequence[Trial]) -> Row:
    found = [trial.measured.figures for trial in trials if trial.measured]
    figures = {
        figure.id: median([value for one in found if (value := one.get(figure.id)) is not None]) for figure in FIGURES
    }
    return Row(setting, figures, len(found), next((trial.trouble for trial in trials if trial.trouble), None))


def pareto(rows: Sequence[Row], latency: str | None) -> set[Setting]:
    """The settings that no other dominates in packets/s and latency. Differences within SAME are none."""
    return {row.setting for row in rows if not any(_dominates(other, row, latency) for other in rows if other is not row)}


def _dominates(one: Row, other: Row, latency: str | None) -> bool:
    comparisons = [_compare(one.figures["packets_per_s"], other.figures["packets_per_s"])]
    if latency:
        comparisons.append(-_compare(one.figures[latency], other.figures[latency]))
    return all(sign >= 0 for sign in comparisons) and any(sign > 0 for sign in comparisons)


def _compare(a: float | None, b: float | None) -> int:
    """+1 when a is clearly larger, -1 when clearly smaller, 0 when they are the same or cannot be compared."""
    if a is None or b is None or abs(a - b) <= SAME * max(abs(a), abs(b)):
        return 0
    return 1 if a > b else -1


def recommend(rows: Sequence[Row], latency: str | None, trials: Sequence[Trial]) -> Recommendation:
    """Of the settings that carry nearly as many packets as the fastest, the one with the least latency; among equals
    the one with the fewest requeues, and what is there already before anything else. What cannot be told from what is
    there is not worth a change."""
    usable = [row for row in rows if row.runs and row.figures["packets_per_s"]]
    if not usable:
        return Recommendation(None, "no setting carried a packet: there is nothing to compare")
    if len(usable) < 2:
        return Recommendation(None, "only one setting was measured: there is nothing to compare it with")
    if latency is None:
        return Recommendation(None, "no latency was measured: give --probe, or a device whose ring can be seen")
    top = max(row.figures["packets_per_s"] for row in usable)
    keeping = [row for row in usable if row.figures["packets_per_s"] >= NEARLY * top]
    least = min(row.figures[latency] for row in keeping)
    equal = [row for row in keeping if row.figures[latency] <= least * (1 + SAME)]
    chosen = min(equal, key=lambda row: (row.setting != AS_IT_WAS, row.figures["requeues_per_s"] or 0.0))
    before = next((row for row in usable if row.setting == AS_IT_WAS), None)
    text = f"{_figures(chosen, latency)}: the least of the settings that carry {NEARLY:.0%} of the most packets"
    if chosen is before:
        return Recommendation(AS_IT_WAS, f"{text}; nothing that was tried is clearly better than what is there")
    if before is None:
        return Recommendation(chosen.setting, text)
    return _against(chosen, before, latency, trials, text)


def _against(chosen: Row, before: Row, latency: str, trials: Sequence[Trial], text: str) -> Recommendation:
    """The chosen setting held against what is there."""
    chances = [chance(trials, chosen.setting, id) for id in (latency, "packets_per_s")]
    text += f"; as it was: {_figures(before, latency)}"
    known = [p for p in chances if p is not None]
    if not known:
        return Recommendation(chosen.setting, f"{text} (too few seconds to tell it from noise: more --runs or --seconds)")
    if min(known) > ALPHA:
        text = f"{chosen.label} came out best with {_figures(chosen, latency)}, but chance alone would differ as much " \
               f"(p = {min(known):.2g})"  # fmt: skip
        return Recommendation(AS_IT_WAS, text)
    return Recommendation(chosen.setting, f"{text} (more than chance: p = {min(known):.2g})")


def _figures(row: Row, latency: str) -> str:
    figure, rate = BY_ID[latency], BY_ID["packets_per_s"]
    return f"{figure.title} {figure.format(row.figures[latency])} at {rate.format(row.figures[rate.id])} packets/s"


def chance(trials: Sequence[Trial], setting: Setting, id: str) -> float | None:
    """How often chance alone would make a figure differ as much from what it was before, second by second over all
    runs (Mann-Whitney's U); None with too few seconds."""
    a, b = _scatter(trials, AS_IT_WAS, id), _scatter(trials, setting, id)
    return mann_whitney(a, b) if min(len(a), len(b)) >= FEWEST_SECONDS else None


def _scatter(trials: Sequence[Trial], setting: Setting, id: str) -> list[float]:
    return [value for t in trials if t.measured and t.setting == setting for value in t.measured.scatter.get(id, ())]
