"""The chart of the last minute: one lane per series, each with its own scale, above a common time axis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.style import Style
from textual.strip import Strip

from bqltop.tui.draw import braille, palette
from bqltop.tui.draw.line import Line, blank, right
from bqltop.tui.traces import Series

AXIS = 8
"""Cells for the scale at the left."""
STYLES = {
    "stopped": palette.DRIVER, "inflight": palette.BQL_SOFT, "limit": palette.BQL, "ring": palette.DRIVER_SOFT,
    "requeues": palette.NOTICE, "backlog": palette.TITLE, "packets": palette.RATE,
    "work": palette.RATE_SOFT,
}


@dataclass(frozen=True, slots=True)
class Lane:
    """What one lane draws: the series, its spans over time, its newest value; ``over`` is a second line in the same
    scale (limit over inflight), ``top`` a known upper edge. ``note`` tells why there is nothing, ``style``
    replaces the series' own."""

    series: Series
    spans: tuple[braille.Span | None, ...]
    latest: float | None = None
    over: tuple[braille.Span | None, ...] = ()
    over_latest: float | None = None
    top: float | None = None
    note: str = ""
    style: Style | None = None

    @property
    def line_style(self) -> Style:
        return self.style or STYLES[self.series.id]


TWO_ABREAST = 124
"""Width from which two lanes stand side by side."""


def split(width: int, height: int, wanted: int) -> tuple[int, list[int]]:
    """How many lanes stand side by side, and the rows of each row of lanes (titles included): a lane has at least
    four rows, and there are no more than ``wanted``."""
    abreast = 2 if width >= TWO_ABREAST and wanted > 1 else 1
    count = max(1, min(-(-wanted // abreast), height // 4)) if height >= 3 else 0
    if not count:
        return 1, []
    least, rest = divmod(height, count)
    return abreast, [least + (number < rest) for number in range(count)]


def beside(left: Sequence[Strip], right: Sequence[Strip], gap: int = 1) -> list[Strip]:
    """Two blocks of lines next to each other."""
    return [Strip.join([a, blank(gap), b]) for a, b in zip(left, right, strict=True)]


def lane(data: Lane, width: int, height: int) -> list[Strip]:
    """A title line with the newest and the extreme values, then ``height - 1`` rows of braille."""
    series = data.series
    known = [span for span in (*data.spans, *data.over) if span is not None]
    top = series.top or data.top or braille.nice_top((high for _, high in known), series.least_top)
    strips = [_title(data, width)]
    rows = height - 1
    if not known:
        note = Line((" " * AXIS, palette.FAINT), (data.note or "no data yet", palette.FAINT)).strip(width)
        return [*strips, *([note] if rows else []), *[blank(width)] * (rows - 1)][:height]
    drawn = braille.rows(data.spans, rows, top, fill=not data.over)
    over = braille.rows(data.over, rows, top) if data.over else []
    style = data.line_style
    for number, text in enumerate(drawn):
        label = series.format(top) if number == 0 else "0" if number == rows - 1 else ""
        line = Line((f"{right(label, AXIS - 2)} ", palette.FAINT), ("▏" if label else " ", palette.RULE))
        _overlay(line, text, style, over[number] if over else "", STYLES.get(series.over or "", style))
        strips.append(line.strip(width))
    return strips


def _overlay(line: Line, text: str, style: Style, over: str, over_style: Style) -> None:
    """One row of dots; where the second line has dots, its style wins and both sets of dots are drawn."""
    if not over.strip():
        line.add(text, style)
        return
    run, run_style = "", style
    for below, above in zip(text, over, strict=False):
        wanted = over_style if above != " " else style
        if wanted is not run_style:
            line.add(run, run_style)
            run, run_style = "", wanted
        bits = (ord(below) - 0x2800 if below != " " else 0) | (ord(above) - 0x2800 if above != " " else 0)
        run += chr(0x2800 + bits) if bits else " "
    line.add(run, run_style)


def _title(data: Lane, width: int) -> Strip:
    series, known = data.series, [span for span in data.spans if span is not None]
    line = Line((" " * AXIS, palette.TEXT), (series.title, data.line_style), (" ", palette.TEXT))
    line.add(series.format(data.latest), palette.STRONG)
    if data.over_latest is not None:
        line.add(f"  {series.over} ", STYLES.get(series.over or "", palette.DIM))
        line.add(series.format(data.over_latest), palette.STRONG)
    if known:
        low, high = min(span[0] for span in known), max(span[1] for span in known)
        extremes = f"min {series.format(low)}  max {series.format(high)}"
        if line.width + len(extremes) + 2 <= width:
            line.to(width - len(extremes) - 1).add(extremes, palette.DIM)
    return line.strip(width)


def axis(seconds: float, width: int, marks: Sequence[float] = ()) -> Strip:
    """The time axis. ``marks`` are seconds before now at which something was changed; they stand as triangles."""
    room = width - AXIS
    cells = ["─"] * room
    labels = [(1.0, "now"), (0.5, f"-{seconds / 2:g} s"), (0.0, f"-{seconds:g} s")]
    for position, label in labels:
        start = min(room - len(label), max(0, round(position * room) - len(label) // 2))
        if start >= 0:
            cells[start : start + len(label)] = label
    line = Line((" " * AXIS, palette.FAINT))
    places = {min(room - 1, int((1 - ago / seconds) * room)) for ago in marks if 0 <= ago <= seconds}
    run = ""
    for place, character in enumerate(cells):
        if place in places:
            line.add(run, palette.FAINT).add("▲", palette.NOTICE)
            run = ""
        else:
            run += character
    return line.add(run, palette.FAINT).strip(width)
