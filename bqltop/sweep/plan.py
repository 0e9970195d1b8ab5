"""What is to be tried, and in which order. Pure."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

Setting = tuple[tuple[str, str], ...]
"""Knobs and values, in the order given; empty: everything as it was before."""

AS_IT_WAS: Setting = ()
MOST_TRIALS = 2000


class BadPlan(ValueError):
    """What was asked for cannot be swept: one plain line."""


def parse_grid(words: Sequence[str]) -> dict[str, list[str]]:
    """``["tx-usecs=0,50", "limit_min=8"]`` -> values by knob, each once, in the order given. Raises BadPlan."""
    grid: dict[str, list[str]] = {}
    for word in words:
        knob, equals, text = word.partition("=")
        values = [value.strip() for value in text.split(",") if value.strip()]
        if not (knob and equals and values):
            raise BadPlan(f"{word!r} is not KNOB=VALUE,VALUE,...")
        if knob in grid:
            raise BadPlan(f"{knob} is given twice")
        grid[knob] = list(dict.fromkeys(values))
    return grid


def settings(grid: Mapping[str, Sequence[str]]) -> tuple[Setting, ...]:
    """Every combination, and before them the settings that are there now: what all others are held against."""
    combined = (tuple(zip(grid, values, strict=True)) for values in itertools.product(*grid.values()))
    return (AS_IT_WAS, *combined) if grid else (AS_IT_WAS,)


def label(setting: Setting) -> str:
    """``tx-usecs=50 limit_min=8``, or ``as it was``."""
    return " ".join(f"{knob}={value}" for knob, value in setting) or "as it was"


@dataclass(frozen=True, slots=True)
class Plan:
    """``runs`` trials of each setting, ``seconds`` each after ``warm_up`` seconds. ``seed`` makes the order."""

    settings: tuple[Setting, ...]
    runs: int = 3
    seconds: float = 5.0
    warm_up: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        if self.trials > MOST_TRIALS:
            raise BadPlan(f"that is {self.trials} trials; {MOST_TRIALS} are the most")

    @property
    def trials(self) -> int:
        return self.runs * len(self.settings)

    def order(self) -> Iterator[tuple[int, Setting]]:
        """(run, setting), trial by trial. Each run goes through all settings, in an order of its own: what drifts
        during a sweep, the load or the machine, meets every setting alike, and a sweep that is stopped after a run
        has tried them all."""
        shuffle = random.Random(self.seed)
        for run in range(1, self.runs + 1):
            chosen = list(self.settings)
            shuffle.shuffle(chosen)
            for setting in chosen:
                yield run, setting

    @property
    def seconds_per_trial(self) -> float:
        return self.seconds + self.warm_up
