"""The chart: one lane per series, each with its own scale, above a common time axis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from bqltop import format as fmt
from bqltop.tui.draw import braille, palette
from bqltop.tui.draw.line import Line, blank, right
from bqltop.tui.series import Series

AXIS = 8
"""Cells for the scale at the left."""
STYLES = {
    "stopped_share": palette.DRIVER, "inflight": palette.BQL_SOFT, "limit": palette.BQL,
    "ring_used": palette.DRIVER_SOFT, "requeues_per_s": palette.NOTICE, "backlog_packets": palette.TITLE,
    "packets_per_s": palette.RATE, "work_average": palette.RATE_SOFT, "dark_buffer_s": palette.DRIVER,
    "drops_per_s": palette.LOSS, "qdisc_sojourn_p99_s": palette.TITLE, "ring_sojourn_p99_s": palette.DRIVER_SOFT,
    "polls_per_s": palette.RATE_SOFT,
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


def axis(seconds: float, width: int, marks: Sequence[float] = (), end_ago: float = 0.0) -> Strip:
    """The time axis of ``seconds`` that end ``end_ago`` seconds before now. ``marks`` are moments, in seconds before its
    right end, at which something was changed; they stand as triangles, in place of a label if need be."""
    room = max(0, width - AXIS)
    cells = ["─"] * room
    places = {min(room - 1, int((1 - before / seconds) * room)) for before in marks if 0 <= before <= seconds}
    right_end = "now" if end_ago < 0.5 else ago(end_ago)
    for position, label in ((1.0, right_end), (0.5, ago(end_ago + seconds / 2)), (0.0, ago(end_ago + seconds))):
        start = min(room - len(label), max(0, round(position * room) - len(label) // 2))
        span = range(start, start + len(label))
        if start >= 0 and all(cells[i] == "─" for i in span) and places.isdisjoint(span):
            cells[start : start + len(label)] = label
    line = Line((" " * AXIS, palette.FAINT))
    run = ""
    for place, character in enumerate(cells):
        if place in places:
            line.add(run, palette.FAINT).add("▲", palette.NOTICE)
            run = ""
        else:
            run += character
    return line.add(run, palette.FAINT).strip(width)


def ago(seconds: float) -> str:
    """-60 s, -5 min, -1 h 10 min: a place on the time axis."""
    return f"-{seconds:.0f} s" if seconds < 99.5 else f"-{fmt.seconds(round(seconds))}"


def with_cursor(strips: Sequence[Strip], cell: int) -> list[Strip]:
    """The same lines with a vertical line through the cell ``cell`` of the chart (the scale not counted)."""
    x, mark = AXIS + cell, Strip([Segment("│", palette.STRONG)], 1)
    return [
        Strip.join([strip.crop(0, x), mark, strip.crop(x + 1)]) if x < strip.cell_length else strip for strip in strips
    ]


def held(points: Sequence[tuple[float, float, float] | None], keep: int) -> tuple[braille.Span | None, ...]:
    """(lowest, highest) per column from the history's points. Where samples come more slowly than columns pass, a value
    holds on for up to ``keep`` columns; a longer silence is a gap."""
    spans: list[braille.Span | None] = []
    last, left = 0.0, 0
    for point in points:
        if point is not None:
            spans.append((point[0], point[1]))
            last, left = point[2], keep
        else:
            spans.append((last, last) if left > 0 else None)
            left -= 1
    return tuple(spans)
