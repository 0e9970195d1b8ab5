"""Charts in braille dots: two columns and four rows of dots in a cell. Pure arithmetic on numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

DOTS = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))
"""Bits of a braille character, [column][row from the top] (Unicode chapter 21.1)."""
_SPAN = [[[sum(DOTS[column][low : high + 1]) for high in range(4)] for low in range(4)] for column in range(2)]

Span = tuple[float, float]


def rows(spans: Sequence[Span | None], height: int, top: float, *, fill: bool = False) -> list[str]:
    """``height`` lines of braille, two spans to a character. ``top`` is the value of the upper edge, 0 the lower.

    Each span is joined to the one before so that steep edges are unbroken; ``fill`` draws down to the base line.
    """
    dots = height * 4
    cells = [[0] * ((len(spans) + 1) // 2) for _ in range(height)]
    before: tuple[int, int] | None = None
    for x, span in enumerate(spans):
        if span is None:
            before = None
            continue
        low, high = (_dot(value, dots, top) for value in span)
        reach_low = 0 if fill else low
        reach_high = high
        if before is not None and not fill:
            if before[0] > high + 1:
                reach_high = before[0] - 1
            elif before[1] < low - 1:
                reach_low = before[1] + 1
        before = (low, high)
        _column(cells, x, dots - 1 - reach_high, dots - 1 - reach_low)
    return ["".join(chr(0x2800 + bits) if bits else " " for bits in line) for line in cells]


def _dot(value: float, dots: int, top: float) -> int:
    return round(max(0.0, min(1.0, value / top)) * (dots - 1)) if top > 0 else 0


def _column(cells: list[list[int]], x: int, first: int, last: int) -> None:
    """Set the dots ``first`` to ``last`` (rows from the top) of dot column ``x``."""
    column, cell = x % 2, x // 2
    span = _SPAN[column]
    for row in range(first // 4, last // 4 + 1):
        top = max(0, first - row * 4)
        bottom = min(3, last - row * 4)
        cells[row][cell] |= span[top][bottom]


def nice_top(values: Iterable[float], least: float = 1.0) -> float:
    """A round value at or above all of ``values``: 1, 2, 2.5, 5 times a power of ten, or 64, 128, 256 where a ring or budget
    is drawn. At least ``least``."""
    highest = max(values, default=0.0)
    if highest <= least:
        return least
    power = 10.0 ** (len(str(int(highest))) - 1) if highest >= 1 else 0.001
    while power <= highest * 10:
        for step in (1, 1.5, 2, 2.5, 3, 4, 5, 6, 8):
            if step * power >= highest:
                return step * power
        power *= 10
    return highest
