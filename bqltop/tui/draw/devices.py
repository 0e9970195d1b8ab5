"""The device list: one line a device, in columns that fit the width."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from bqltop import format as fmt
from bqltop.tui.devices import DeviceTable, Row
from bqltop.tui.draw import head, palette
from bqltop.tui.draw.line import Line, blank, cut, left, literal, right

HINTS = (("?", "help"), ("q", "quit"), ("Enter", "watch"), ("/", "filter"), ("s", "sort"), ("r", "reverse"),
         ("↑ ↓", "move"), ("Esc", "back"))  # fmt: skip
TYPING_HINTS = (("Enter", "done"), ("Esc", "no filter"))
GAP = 2


@dataclass(frozen=True, slots=True)
class Column:
    """``width`` is the least, ``most`` how far it may grow; taken by ``rank``, lowest first, while there is room."""

    title: str
    width: int
    rank: int
    text: Callable[[Row], str]
    style: Style
    most: int = 0
    flush_left: bool = False


def _peer(row: Row) -> str:
    peer = row.device.peer
    if peer is None:
        return "-"
    name = literal(peer.name) if peer.name else f"index {peer.ifindex}"
    if peer.netns is None or peer.netns == row.device.namespace.name:
        return name
    return f"{name}@{literal(row.peer_owner or peer.netns)}"


def _bql(row: Row) -> str:
    device = row.device
    if device.bql is None:
        return "?"
    return {"packets": "pkts", "bytes": "bytes"}.get(str(device.unit), "yes") if device.bql else "no"


def _rate(name: str) -> Callable[[Row], str]:
    return lambda row: fmt.rate(getattr(row.rates, name)) if row.rates else fmt.ABSENT


COLUMNS = (
    Column("name", 15, 0, lambda row: literal(row.device.name), palette.STRONG, 16, True),
    Column("namespace", 16, 2, lambda row: literal(row.place), palette.TEXT, 44, True),
    Column("driver", 10, 6, lambda row: literal(row.device.driver or row.device.kind or "-"), palette.DIM, 11, True),
    Column("state", 5, 8, lambda row: _state(row), palette.DIM, 8, True),
    Column("peer", 14, 7, _peer, palette.TEXT, 40, True),
    Column("BQL", 5, 4, _bql, palette.BQL_SOFT, 0, True),
    Column("queues", 6, 9, lambda row: str(row.device.tx_queues), palette.DIM),
    Column("qdisc", 8, 11, lambda row: literal(row.device.qdisc or "-"), palette.DIM, 10, True),
    Column("pkt/s", 6, 1, _rate("tx_packets"), palette.RATE),
    Column("stopped", 7, 3, lambda row: "-" if row.stopped is None else f"{row.stopped * 100:.0f} %", palette.DRIVER),
    Column("backlog", 7, 5, lambda row: fmt.count(row.device.backlog_packets), palette.TITLE),
    Column("requeue/s", 9, 10, _rate("requeues"), palette.NOTICE),
    Column("drop/s", 6, 12, _rate("drops"), palette.LOSS),
    Column("rx pkt/s", 8, 13, _rate("rx_packets"), palette.RATE_SOFT),
)
QUIET = {"0", "-", "0 %", "no"}


def _state(row: Row) -> str:
    state = row.device.oper_state
    return "up" if state == "UNKNOWN" and row.device.up else state.lower()


def place(width: int) -> list[tuple[Column, int]]:
    """The columns that fit, in display order, with their widths."""
    room, widths = width - 2, {}
    for column in sorted(COLUMNS, key=lambda column: column.rank):
        needed = column.width + (GAP if widths else 0)
        if needed <= room:
            widths[column.title] = column.width
            room -= needed
    growing = [column for column in COLUMNS if column.title in widths and column.most > column.width]
    while room > 0 and growing:
        for column in list(growing):
            if room and widths[column.title] < column.most:
                widths[column.title] += 1
                room -= 1
            else:
                growing.remove(column)
    return [(column, widths[column.title]) for column in COLUMNS if column.title in widths]


def page(table: DeviceTable, width: int, height: int) -> list[Strip]:
    """The whole screen: a line of title, the columns' titles, the devices, a line of what is to be said, the keys."""
    if height < 5 or width < 24:
        return [Line((cut("too small for the list", width), palette.TEXT)).strip(width)] + [blank(width)] * (height - 1)
    room = height - 4
    table.follow(room)
    placed = place(width)
    lines = [_title(table, width), _heads(table, placed, width)]
    visible = table.rows[table.scrolled : table.scrolled + room]
    current = table.current
    lines += [_row(row, placed, width, row is current) for row in visible]
    if not visible:
        text = "no device passes the filter" if table.known and table.total else "no device" if table.known else "looking ..."
        lines.append(Line((f"  {text}", palette.FAINT)).strip(width))
    lines += [blank(width)] * (height - 2 - len(lines))
    lines.append(_said(table, room, width))
    lines.append(head.keys(TYPING_HINTS if table.typing else HINTS, width))
    return lines


def _title(table: DeviceTable, width: int) -> Strip:
    line = Line((" bqltop  ", palette.HEADER_DIM), ("devices of all namespaces", palette.HEADER_STRONG))
    count = f"{len(table.rows)} of {table.total}" if table.filter else f"{table.total}"
    line.add(f"  {count}", palette.HEADER)
    if table.typing or table.filter:
        cursor = "▏" if table.typing else ""
        line.add("   / ", palette.HEADER_DIM).add(literal(table.filter), palette.HEADER_STRONG).add(cursor, palette.HEADER_STRONG)
    return line.strip(width, palette.HEADER)


def _heads(table: DeviceTable, placed: list[tuple[Column, int]], width: int) -> Strip:
    """The titles; the one that sorts carries an arrow the way the values go."""
    line = Line((" ", palette.DIM))
    largest_first = table.sort not in ("name", "namespace")
    arrow = "▾" if largest_first != table.reverse else "▴"
    for number, (column, room) in enumerate(placed):
        line.add(" " * GAP if number else "", palette.DIM)
        sorts = column.title == table.sort
        title = cut(column.title, room - 1) + arrow if sorts else column.title
        style = palette.TITLE if sorts else palette.DIM
        line.add(left(title, room) if column.flush_left else right(title, room), style)
    return line.strip(width)


def _row(row: Row, placed: list[tuple[Column, int]], width: int, selected: bool) -> Strip:
    line = Line(("▸" if selected else "•" if row.watched else " ", palette.STRONG))
    for number, (column, room) in enumerate(placed):
        text = column.text(row)
        style = palette.FAINT if text in QUIET else column.style
        line.add(" " * GAP if number else "").add(left(text, room) if column.flush_left else right(text, room), style)
    strip = line.strip(width)
    if selected:
        strip = Strip([Segment(s.text, s.style + palette.CURSOR) for s in strip], width)
    return strip


def _said(table: DeviceTable, room: int, width: int) -> Strip:
    """What is in the way, or where in the list one is."""
    shown = f"{table.scrolled + 1}-{min(len(table.rows), table.scrolled + room)} of {len(table.rows)}, by {table.sort}"
    where = shown if len(table.rows) > room else f"by {table.sort}"
    text, style = literal(table.message), palette.NOTICE
    if not text and table.unreachable:
        more = f" (and {len(table.unreachable) - 1} more)" if len(table.unreachable) > 1 else ""
        text, style = f"not to be seen: {literal(table.unreachable[0])}{more}", palette.DIM
    if not text:
        text, style = "• is being watched   . is the namespace bqltop runs in", palette.FAINT
    line = Line((cut(f" {text}", width - len(where) - 3), style))
    return line.to(width - len(where) - 1).add(where, palette.DIM).strip(width)
