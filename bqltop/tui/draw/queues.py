"""The TX-queue table: its columns, which of them fit a width, and one row's line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from bqltop import fields
from bqltop import format as fmt
from bqltop.model import Unit
from bqltop.tui.draw import bars, palette
from bqltop.tui.draw.line import Line, cut, left, right
from bqltop.tui.frame import Row

UNIT_WORDS = {Unit.PACKETS: "pkts", Unit.BYTES: "bytes", None: "-"}
GAP = 2
Draw = Callable[[Row, int], list[Segment]]


@dataclass(frozen=True, slots=True)
class Column:
    """One column. ``width`` is the least that is of use, ``most`` how far it may grow (bars do); columns are taken
    by ``rank``, lowest first, until the width is used up. ``numbers``: cells of the number before a bar, over which the
    title stands. ``fields`` name what ``?`` explains."""

    id: str
    title: str
    width: int
    rank: int
    draw: Draw
    most: int = 0
    flush_left: bool = False
    numbers: int = 0
    fields: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Placed:
    column: Column
    width: int


def place(columns: Sequence[Column], width: int) -> list[Placed]:
    """The columns that fit ``width``, in display order, with their widths: the rest of the room goes to those that
    may grow, evenly."""
    room, chosen = width - 2, []
    for column in sorted(columns, key=lambda c: c.rank):
        needed = column.width + (GAP if chosen else 0)
        if needed <= room:
            chosen.append(column)
            room -= needed
    widths = {column.id: column.width for column in chosen}
    growing = [column for column in chosen if column.most > column.width]
    while room > 0 and growing:
        for column in list(growing):
            if room and widths[column.id] < column.most:
                widths[column.id] += 1
                room -= 1
            if widths[column.id] >= column.most:
                growing.remove(column)
    return [Placed(column, widths[column.id]) for column in columns if column.id in widths]


def columns_for(rows: Sequence[Row], width: int = 80) -> tuple[Column, ...]:
    """The columns worth having for these queues: without BQL no bar of inflight and limit, without a ring none of
    the ring; the words that stand there then need little room. In a wide window the bars and the lamps' words come
    before further columns."""
    has_bql = any(row.sample.limit is not None for row in rows)
    timed = any(row.sample.qdisc_sojourn_histogram is not None for row in rows)
    has_ring = any(row.sample.ring_size for row in rows)
    bar = 0 if width < 60 else 9 if width < 110 else 8 if width < 150 else 20
    return tuple(
        column
        for column in (
            Column("index", "q", 3, 0, _index, fields=("index",)),
            Column("state", "state", 3 if width < 90 else 11, 1, _state, 11, True,
                   fields=("drv_xoff", "stack_xoff", "frozen")),
            Column("stopped", "stopped", 7 if width < 150 else 16, 2, _stopped, 7 if width < 120 else 24, numbers=7,
                   fields=("stopped_share",)),
            Column("inflight", "inflight/limit", 14 + bar, 3, _inflight, 55, numbers=14, fields=("inflight", "limit"))
            if has_bql else
            Column("inflight", "infl/limit", 10, 10, _inflight, 0, True, fields=("inflight", "limit")),
            Column("unit", "unit", 5, 3, _unit, 0, True, fields=("unit",)) if has_bql else None,
            _figure("limit_min", 7, 15, lambda r: bound(r.sample.limit_min), palette.DIM) if has_bql else None,
            _figure("limit_max", 7, 16, lambda r: bound(r.sample.limit_max), palette.DIM) if has_bql else None,
            _figure("inflight_p50", 8, 17, lambda r: fmt.count(r.window.inflight_p50), palette.BQL_SOFT)
            if has_bql else None,
            _figure("inflight_p99", 8, 14, lambda r: fmt.count(r.window.inflight_p99), palette.BQL_SOFT)
            if has_bql else None,
            Column("ring", "ring", 7 + bar, 4, _ring, 44, numbers=7, fields=("ring_used", "ring_size"))
            if has_ring else Column("ring", "ring", 6, 11, _ring, 0, True, fields=("ring_used",)),
            _figure("packets_per_s", 6, 5, lambda r: fmt.rate(r.window.packets_per_s), palette.RATE),
            _figure("completed_per_s", 6, 7, lambda r: fmt.rate(r.window.completed_per_s), palette.RATE),
            _figure("busy_per_s", 6, 8, lambda r: fmt.rate(r.window.busy_per_s), palette.NOTICE),
            _figure("dark_buffer_s", 8, 6, lambda r: fmt.seconds(r.dark_buffer_s), palette.DRIVER),
            _figure("stops_driver_per_s", 8, 18, lambda r: fmt.rate(r.window.stops_driver_per_s), palette.DRIVER_SOFT),
            _figure("stops_bql_per_s", 8, 19, lambda r: fmt.rate(r.window.stops_bql_per_s), palette.BQL_SOFT)
            if has_bql else None,
            _figure("qdisc_sojourn_p50_s", 9, 12, lambda r: fmt.seconds(r.window.qdisc_sojourn_p50_s), palette.TEXT)
            if timed else None,
            _figure("ring_sojourn_p50_s", 8, 13, lambda r: fmt.seconds(r.window.ring_sojourn_p50_s), palette.DRIVER)
            if timed else None,
            Column("timeouts", "timeouts", 8, 9, _timeouts, fields=("tx_timeouts",)),
        )
        if column is not None
    )


def header(placed: Sequence[Placed], width: int, sort: str = "queue") -> Strip:
    """The titles, flush as their columns are; the one that sorts carries an arrow."""
    line = Line((" ", palette.DIM))
    for place_number, (column, room) in enumerate((p.column, p.width) for p in placed):
        if place_number:
            line.add(" " * GAP, palette.DIM)
        title = column.title
        if column.id == "state":
            title = "DRV STK FRZ" if room >= 11 else "DSF"
        if sort != "queue" and column.id == _SORT_COLUMN[sort]:
            title = cut(title, room - 1) + "▾"
        if column.numbers:
            title = right(title, column.numbers if room > column.numbers + 1 else room)
        line.add(left(title, room) if column.flush_left or column.numbers else right(title, room), palette.DIM)
    return line.strip(width)


_SORT_COLUMN = {"stopped": "stopped", "inflight": "inflight", "rate": "packets_per_s"}


def row_strip(row: Row, placed: Sequence[Placed], width: int, selected: bool = False) -> Strip:
    """One queue's line. The selected one has a mark in its first cell, beside its colour."""
    line = Line(("▸" if selected else " ", palette.STRONG))
    for place_number, p in enumerate(placed):
        if place_number:
            line.add(" " * GAP)
        line.extend(p.column.draw(row, p.width), p.width)
    strip = line.strip(width)
    if selected:
        strip = Strip([Segment(s.text, s.style + palette.CURSOR) for s in strip], width)
    return strip


LEAST_RATE = 100.0
"""Packets per second of all queues together from which shares mean something."""
UNEVEN_OF_TWO, UNEVEN = 0.8, 0.6
"""The share of one queue from which the load is called uneven."""


def imbalance(rates: Sequence[tuple[int, float | None]]) -> str:
    """Which queue (index, packets/s) carries far more than its share, in a few words; empty where none does."""
    known = [(rate, index) for index, rate in rates if rate]
    total = sum(rate for rate, _ in known)
    if len(rates) < 2 or total < LEAST_RATE:
        return ""
    highest, index = max(known)
    if highest / total < (UNEVEN_OF_TWO if len(rates) == 2 else UNEVEN):
        return ""
    return f"uneven: q{index} has {highest / total * 100:.0f} % of the packets"


def folded_strip(indices: Sequence[int], width: int) -> Strip:
    """The line that stands for idle queues."""
    text = f"  {len(indices)} idle queues: {ranges(indices)}"
    return Line((cut(text, width - 16), palette.FAINT), ("   z shows them", palette.FAINT)).strip(width)


def ranges(numbers: Sequence[int]) -> str:
    """Sorted numbers in short: 1-4, 6, 8-11."""
    parts: list[list[int]] = []
    for number in numbers:
        if parts and number == parts[-1][1] + 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in parts)


def bound(value: int | None) -> str:
    """limit_min or limit_max; DQL's own maximum (include/linux/dynamic_queue_limits.h: DQL_MAX_LIMIT) is no bound."""
    return "none" if value is not None and value >= DQL_MAX_LIMIT else fmt.count(value)


DQL_MAX_LIMIT = 1879048192
"""include/linux/dynamic_queue_limits.h: (UINT_MAX / 2) - (UINT_MAX / 16)."""


def _figure(id: str, width: int, rank: int, text: Callable[[Row], str], style: Style) -> Column:
    """A column of one number, its title from the table of figures."""
    field = fields.get("queue", id)

    def draw(row: Row, room: int) -> list[Segment]:
        shown = text(row)
        return [Segment(right(shown, room), palette.FAINT if shown in ("-", "0", "0 s") else style)]

    return Column(id, field.title, max(width, len(field.title)), rank, draw, fields=(id,))


def _index(row: Row, room: int) -> list[Segment]:
    return [Segment(right(str(row.sample.index), room), palette.TEXT)]


LAMPS = (("DRV", "drv_xoff", palette.DRIVER, palette.DRIVER_SOFT), ("STK", "stack_xoff", palette.BQL, palette.BQL_SOFT),
         ("FRZ", "frozen", palette.FROZEN, palette.FROZEN))


def _state(row: Row, room: int) -> list[Segment]:
    """The three lamps: capitals for a bit that is set now, small letters for one that was during the window, a dot
    for neither, a question mark where it cannot be seen."""
    line = Line()
    recent = {"drv_xoff": row.window.stopped_driver_share, "stack_xoff": row.window.stopped_bql_share, "frozen": None}
    for number, (word, name, now_style, recent_style) in enumerate(LAMPS):
        if number and room >= 11:
            line.add(" ")
        letters = word if room >= 11 else word[0]
        state = getattr(row.sample, name)
        if state is None:
            line.add(left("?", len(letters)), palette.FAINT)
        elif state:
            line.add(letters, now_style)
        elif recent[name]:
            line.add(letters.lower(), recent_style)
        else:
            line.add(left("·", len(letters)), palette.FAINT)
    return line.to(room).segments


def _stopped(row: Row, room: int) -> list[Segment]:
    """Share of time stopped; with room, a bar split into the driver's part and BQL's."""
    share, driver = row.window.stopped_share, row.window.stopped_driver_share or 0.0
    style = palette.FAINT if not share else palette.DRIVER if driver * 2 >= share else palette.BQL
    text = Segment(right(fmt.share(share), min(room, 7)), style)
    if room < 12:
        return [text] if room <= 7 else [Segment(" " * (room - 7), palette.TEXT), text]
    cells = room - 8
    return [text, Segment(" ", palette.TEXT), *bars.bar(share, cells, style)]


def _inflight(row: Row, room: int) -> list[Segment]:
    """inflight/limit and a bar whose right end is the limit, with limit_min and limit_max marked on it."""
    sample = row.sample
    if sample.limit is None or sample.inflight is None:
        absent = "no BQL" if sample.drv_xoff is not None and sample.limit is None else "-"
        return [Segment(left(absent, room), palette.FAINT)]
    text, numbers = f"{fmt.count(sample.inflight)}/{fmt.count(sample.limit)}", 14
    share = sample.inflight / sample.limit if sample.limit else float(sample.inflight > 0)
    style = palette.BQL if sample.inflight else palette.FAINT
    cells = max(0, room - numbers - 1)
    if not cells:
        return [Segment(right(text, room), style)]
    marks = bars.limit_marks(sample.limit, sample.limit_min, sample.limit_max, cells)
    return [Segment(right(text, numbers) + " ", style), *bars.bar(share, cells, palette.BQL_SOFT, marks)]


def _unit(row: Row, room: int) -> list[Segment]:
    return [Segment(left(UNIT_WORDS[row.sample.unit], room), palette.DIM if row.sample.unit else palette.FAINT)]


def _ring(row: Row, room: int) -> list[Segment]:
    sample = row.sample
    if not sample.ring_size or row.ring is None:
        return [Segment(left("-", room), palette.FAINT)]
    text = f"{fmt.count(round(row.ring))}/{fmt.count(sample.ring_size)}"
    share = row.ring / sample.ring_size
    numbers = 7
    style = palette.DRIVER if row.ring else palette.FAINT
    if room <= numbers + 1:
        return [Segment(right(text, room), style)]
    return [Segment(right(text, numbers) + " ", style), *bars.bar(share, room - numbers - 1, palette.DRIVER_SOFT)]


def _timeouts(row: Row, room: int) -> list[Segment]:
    """Watchdog alarms so far; an exclamation mark while they grow."""
    count = row.sample.tx_timeouts
    text = fmt.count(count) + ("!" if row.window.tx_timeouts else "")
    return [Segment(right(text, room), palette.LOSS if count else palette.FAINT)]

