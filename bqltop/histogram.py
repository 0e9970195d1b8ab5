"""Histograms: cells that the eBPF programs fill, and what can be read from them.

Two schemes. ``LOG_LINEAR`` covers 0..2^40: values below 4 have a cell each, above that every power of two is cut
into four equal cells, so a percentile is right within an eighth of its value. ``LINEAR_WORK`` is for NAPI work:
cell i holds exactly i, the last one its value and everything above. The same arithmetic stands in
kernel/programs/common.h; tests hold the two against each other.
"""

from __future__ import annotations

from collections.abc import Sequence

LOG_LINEAR_CELLS = 160
LINEAR_WORK_CELLS = 65


def log_linear_cell(value: int) -> int:
    """The LOG_LINEAR cell that holds ``value`` (values past the end land in the last cell)."""
    if value < 4:
        return max(value, 0)
    octave = value.bit_length() - 1
    return min((octave - 1) * 4 + ((value >> (octave - 2)) & 3), LOG_LINEAR_CELLS - 1)


def log_linear_bounds(cell: int) -> tuple[int, int]:
    """Smallest and largest value of a LOG_LINEAR cell, both included."""
    if cell < 4:
        return cell, cell
    octave, quarter = cell // 4 + 1, cell % 4
    width = 1 << (octave - 2)
    low = (4 + quarter) * width
    return low, low + width - 1


def difference(newer: Sequence[int] | None, older: Sequence[int] | None) -> tuple[int, ...] | None:
    """Cells of a window: the newer cumulative histogram less the older one; None when there is no newer one."""
    if newer is None:
        return None
    if not older:
        return tuple(newer)
    return tuple(map(int.__sub__, newer, older))


def percentile(cells: Sequence[int] | None, share: float) -> float | None:
    """The value below which ``share`` (0..1) of a LOG_LINEAR histogram lies: the middle of its cell; None if empty."""
    total = sum(cells) if cells else 0
    if not total:
        return None
    wanted, seen = share * total, 0
    for cell, count in enumerate(cells):
        seen += count
        if count and seen >= wanted:
            low, high = log_linear_bounds(cell)
            return (low + high) / 2
    return None


def mean(cells: Sequence[int] | None) -> float | None:
    """Mean of a LOG_LINEAR histogram, taking every value as the middle of its cell; None if empty."""
    total = sum(cells) if cells else 0
    if not total:
        return None
    return sum(count * sum(log_linear_bounds(cell)) / 2 for cell, count in enumerate(cells) if count) / total


def linear_mean(cells: Sequence[int] | None) -> float | None:
    """Mean of a LINEAR_WORK histogram; None if empty."""
    total = sum(cells) if cells else 0
    return sum(cell * count for cell, count in enumerate(cells)) / total if total else None
