"""One line of the table that `make bench` prints, and the statistics it is made of."""

from __future__ import annotations

import os
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """One figure. ``bound`` is what was promised, as text; ``kept`` whether it was, None without a promise."""

    benchmark: str
    case: str
    figure: str
    bound: str = ""
    kept: bool | None = None
    detail: str = ""


def at_most(benchmark: str, case: str, value: float, bound: float, unit: str, detail: str = "") -> Row:
    """A figure that has to stay below its bound."""
    return Row(benchmark, case, f"{value:.3g} {unit}", f"< {bound:g} {unit}", value < bound, detail)


def at_least(benchmark: str, case: str, value: float, bound: float, detail: str = "") -> Row:
    """A ratio that has to reach its bound."""
    return Row(benchmark, case, f"{value:.3f}", f">= {bound:g}", value >= bound, detail)


def spread(values: Sequence[float], digits: int = 3) -> str:
    """The middle half of the values, for the last column."""
    low, _, high = statistics.quantiles(values, n=4)
    return f"middle half {low:.{digits}f} to {high:.{digits}f}, {len(values)} runs"


def load() -> str:
    """Load average of the last minute: other work on the machine widens every figure."""
    return f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs"


HEADS = ("benchmark", "case", "figure", "bound", "", "how sure")
MARKS = {True: "ok", False: "MISSED", None: ""}


def cells(row: Row) -> tuple[str, ...]:
    return row.benchmark, row.case, row.figure, row.bound, MARKS[row.kept], row.detail


def print_rows(rows: Iterable[Row]) -> list[Row]:
    """Print each row as it comes, and give them all back."""
    widths = (10, 30, 14, 12, 7, 0)

    def line(texts: Sequence[str]) -> str:
        return " ".join(text.ljust(width) for text, width in zip(texts, widths, strict=True)).rstrip()

    print(line(HEADS))
    done = []
    for row in rows:
        print(line(cells(row)), flush=True)
        done.append(row)
    return done
