"""Horizontal bars in eighths of a cell, and the histogram of NAPI work made of them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from rich.segment import Segment
from rich.style import Style

from bqltop.tui.draw import palette

EIGHTHS = " ▏▎▍▌▋▊▉█"


def filled(share: float, width: int) -> str:
    """A bar of ``width`` cells of which ``share`` (0..1, clamped) is filled. A share above nothing shows at least
    one eighth: a little must not look like nothing."""
    if width <= 0:
        return ""
    eighths = round(max(0.0, min(1.0, share)) * width * 8)
    if share > 0:
        eighths = max(1, eighths)
    full, rest = divmod(eighths, 8)
    return ("█" * full + (EIGHTHS[rest] if rest else "")).ljust(width)[:width]


def bar(share: float | None, width: int, style: Style, marks: dict[int, str] | None = None) -> Sequence[Segment]:
    """A bar on a track. ``marks`` are characters to lay over it at cell positions (limit_min, limit_max)."""
    if width <= 0:
        return ()
    if share is None:
        return (Segment(" " * width, palette.FAINT),)
    return _bar(filled(share, width), style, tuple(sorted(marks.items())) if marks else ())


@lru_cache(4096)
def _bar(text: str, style: Style, marks: tuple[tuple[int, str], ...]) -> tuple[Segment, ...]:
    """The segments of a bar whose filled part is ``text``. There are few different ones, and they are drawn over and
    over."""
    used, segments, place = len(text.rstrip()), [], 0
    for position, mark in (*marks, (len(text), "")):
        segments.append(Segment(text[place : min(used, position)], style))
        segments.append(Segment("·" * (position - max(place, used)), palette.TRACK))
        segments.append(Segment(mark, palette.STRONG))
        place = position + 1
    return tuple(segment for segment in segments if segment.text)


def limit_marks(limit: int, limit_min: int | None, limit_max: int | None, width: int) -> dict[int, str]:
    """Where limit_min and limit_max lie on a bar whose right end is ``limit``: ``m`` inside it for the lower
    bound; ``M`` at the end where limit stands at its upper bound and cannot grow. Bounds that play no part
    (0, or far above) have no mark."""
    marks: dict[int, str] = {}
    if limit > 0 and limit_min and limit_min <= limit:
        marks[min(width - 1, int(limit_min / limit * width))] = "m"
    if limit_max is not None and limit >= limit_max:
        marks[width - 1] = "M"
    return marks


WORK_BUCKETS = ((0, 0), (1, 1), (2, 3), (4, 7), (8, 15), (16, 31), (32, 63), (64, 64))
"""Packets per poll, doubling: 0 and 1 stand alone because they mean a poll for nothing and one per packet; 64 is
the whole budget."""


def work_buckets(cells: Sequence[int] | None) -> list[tuple[str, float]]:
    """A LINEAR_WORK histogram as (label, share of the polls) per bucket of WORK_BUCKETS."""
    total = sum(cells) if cells else 0
    result = []
    for low, high in WORK_BUCKETS:
        label = "64+" if low == 64 else str(low) if low == high else f"{low}-{high}"
        count = sum(cells[low : high + 1]) if cells else 0
        result.append((label, count / total if total else 0.0))
    return result
