"""The smaller panels: qdisc tree, NAPI, events."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len
from textual.strip import Strip

from bqltop import format as fmt
from bqltop.model import Event
from bqltop.tui.draw import bars, palette
from bqltop.tui.draw.line import Line, blank, cut, left, literal, right, wrap
from bqltop.tui.frame import Frame
from bqltop.window import NapiWindow, QdiscWindow, napi_names

# -- qdiscs --------------------------------------------------------------------------------------------------------

_QDISC_COLUMNS = (
    # title, width, least panel width from which it shows, text, style
    ("pkt/s", 6, 0, lambda q: fmt.rate(q.packets_per_s), palette.RATE),
    ("backlog", 7, 0, lambda q: fmt.count(q.backlog_packets), palette.TITLE),
    ("bytes", 8, 62, lambda q: fmt.size(q.backlog_bytes), palette.DIM),
    ("drop/s", 6, 0, lambda q: fmt.rate(q.drops_per_s), palette.LOSS),
    ("requeue/s", 9, 44, lambda q: fmt.rate(q.requeues_per_s), palette.NOTICE),
    ("overlim/s", 9, 74, lambda q: fmt.rate(q.overlimits_per_s), palette.DIM),
)


def qdiscs(frame: Frame, width: int, height: int) -> list[Strip]:
    """The qdisc tree with its rates: the root first, then what hangs from it, the fullest first where not all fit."""
    if height <= 0:
        return []
    tree = frame.window.qdiscs if frame.window else ()
    columns = [column for column in _QDISC_COLUMNS if width >= column[2]]
    room = width - 1 - sum(column[1] + 1 for column in columns)
    head = Line((left(" qdisc", room), palette.DIM))
    for title, columns_width, *_ in columns:
        head.add(" " + right(title, columns_width), palette.DIM)
    strips = [head.strip(width)]
    if not tree:
        text = "no qdisc" if frame.window else "waiting for the second sample"
        strips.append(Line((f" {text}", palette.FAINT)).strip(width))
    busy = [qdisc for qdisc in tree if qdisc.parent == "root" or not _idle(qdisc)]
    idle = len(tree) - len(busy)
    shown, hidden = _fitting(busy if idle > 1 else tree, height - 1, idle > 1)
    strips.extend(_qdisc_line(qdisc, columns, room, width) for qdisc in shown)
    rest = [f"{hidden} more, emptier"] * bool(hidden) + [f"{idle} idle"] * (idle > 1)
    if rest:
        strips.append(Line((f"   and {', '.join(rest)}", palette.FAINT)).strip(width))
    return (strips + [blank(width)] * height)[:height]


def qdisc_lines(frame: Frame) -> int:
    """Lines that show the whole tree, idle children in one."""
    tree = frame.window.qdiscs if frame.window else ()
    idle = sum(qdisc.parent != "root" and _idle(qdisc) for qdisc in tree)
    return len(tree) - idle + 1 if idle > 1 else len(tree)


def _idle(qdisc: QdiscWindow) -> bool:
    return not (qdisc.packets_per_s or qdisc.backlog_packets or qdisc.drops_per_s or qdisc.requeues_per_s)


def _fitting(tree: Sequence[QdiscWindow], room: int, with_rest: bool) -> tuple[list[QdiscWindow], int]:
    """Those that fit ``room`` lines and how many do not. A line is kept for what is left out, or ``with_rest`` anyway."""
    if len(tree) <= room - with_rest:
        return list(tree), 0
    roots = [qdisc for qdisc in tree if qdisc.parent == "root"]
    rest = sorted((qdisc for qdisc in tree if qdisc.parent != "root"),
                  key=lambda q: (-q.backlog_packets, -q.drops_per_s, -q.packets_per_s))
    shown = (roots + rest)[: max(0, room - 1)]
    return shown, len(tree) - len(shown)


def _qdisc_line(qdisc: QdiscWindow, columns, room: int, width: int) -> Strip:
    handle = "" if qdisc.handle in ("0:", "") or room < 24 else f" {literal(qdisc.handle)}"
    indent = " " if qdisc.parent == "root" else "  └ "
    name = f"{indent}{literal(qdisc.kind)}{handle}"
    if qdisc.txq is None:
        name += f" {qdisc.parent}"
    else:  # which of many equal children it is stays whole when the kind is cut
        number = f" q{qdisc.txq}"
        name = cut(name, max(len(indent) + 1, room - len(number))) + number
    line = Line((left(name, room), palette.TEXT))
    for _, column_width, _, text, style in columns:
        shown = text(qdisc)
        line.add(" " + right(shown, column_width), palette.FAINT if shown in ("0", "0 B") else style)
    return line.strip(width)


# -- NAPI ----------------------------------------------------------------------------------------------------------


def napi(frame: Frame, width: int, height: int) -> list[Strip]:
    """Polls, work and the share of full polls per NAPI instance, and the histogram of work over all of them."""
    windows = frame.window.napis if frame.window else ()
    if not windows:
        return _no_napi(frame, width, height)
    named = [(f"-{name}", each) for (_, name), each in zip(napi_names(windows), windows, strict=True)]
    ordered = sorted(named, key=lambda pair: -pair[1].polls_per_s)
    for_histogram = 8 if height >= 10 else 4 if height >= 6 else 0
    for_lines = max(1, height - 1 - for_histogram)
    shown = ordered[:for_lines]
    if len(ordered) > for_lines:
        shown = ordered[: for_lines - 1] if for_lines > 1 else ordered[:1]
    strips = [_napi_head(width)]
    strips.extend(_napi_line(number, each, width) for number, each in shown)
    if len(shown) < len(ordered) and len(strips) < 1 + for_lines:
        strips.append(Line((f"   and {len(ordered) - len(shown)} more", palette.FAINT)).strip(width))
    if for_histogram:
        cells = [sum(column) for column in zip(*(n.work_histogram for n in windows), strict=True)]
        strips.extend(work_histogram(cells, width, for_histogram))
    return (strips + [blank(width)] * height)[:height]


def _napi_widths(width: int) -> tuple[int, str, int]:
    """Width of the name, and title and width of the work column: narrow panels keep the name readable."""
    title, room = ("pkts/poll", 11) if width >= 46 else ("work", 6)
    return max(4, width - 17 - room), title, room


def _napi_head(width: int) -> Strip:
    name, title, room = _napi_widths(width)
    return Line((left(" instance", name), palette.DIM), (right("polls/s", 8), palette.DIM),
                (right(title, room), palette.DIM), (right("full", 8), palette.DIM)).strip(width)


def _napi_line(number: str, each: NapiWindow, width: int) -> Strip:
    """``number``, which tells an instance from the others, stays whole when the device's name is cut."""
    name_room, _, room = _napi_widths(width)
    name = cut(f" {literal(each.device)}", max(2, name_room - cell_len(number))) + number
    if each.role == "peer" and cell_len(name) + 7 <= name_room:
        name += " (peer)"
    work = "-" if each.work_average is None else f"{each.work_average:.1f}"
    return Line((left(name, name_room), palette.TEXT), (right(fmt.rate(each.polls_per_s), 8), palette.RATE),
                (right(work, room), palette.RATE), (right(fmt.share(each.full_share), 8), palette.NOTICE)).strip(width)


def work_histogram(cells: Sequence[int], width: int, height: int) -> list[Strip]:
    """Shares of polls by packets handled: eight bars below each other, or four beside four."""
    buckets = bars.work_buckets(cells)
    columns = 1 if height >= 8 else 2
    per_column = len(buckets) // columns
    each = width // columns
    strips = []
    for row in range(min(height, per_column)):
        line = Line()
        for column in range(columns):
            label, share = buckets[row + column * per_column]
            number = f"{share * 100:.0f} %" if share >= 0.005 else "0 %" if not share else "<1 %"
            line.add(right(label, 6) + " ", palette.DIM)
            line.extend(bars.bar(share, max(0, each - 14), palette.RATE_SOFT))
            line.add(right(number, 6), palette.TEXT if share else palette.FAINT).to(each * (column + 1))
        strips.append(line.strip(width))
    return strips


def _no_napi(frame: Frame, width: int, height: int) -> list[Strip]:
    missing = [f"{p.name}: {p.why or 'not in force'}" for p in frame.missing if p.name in ("napi", "bpf")]
    if frame.window is None:
        texts = ["waiting for the second sample"]
    elif missing:
        texts = ["NAPI polls are seen by eBPF only.", *missing]
    else:
        texts = ["No NAPI poll of this device or its peer so far."]
    lines = [part for text in texts for part in wrap(literal(text), width - 2)]
    strips = [Line((f" {text}", palette.DIM)).strip(width) for text in lines]
    return (strips + [blank(width)] * height)[:height]


# -- events --------------------------------------------------------------------------------------------------------


def events(happened: Sequence[Event], width: int, height: int) -> list[Strip]:
    """The newest events, the newest first."""
    strips = []
    for event in list(reversed(happened))[:height]:
        line = Line((f" {fmt.clock(event.time_ns)} ", palette.DIM))
        if event.queue is not None:
            line.add(f"q{event.queue} ", palette.TEXT)
        strips.append(line.add(cut(literal(event.text), width - line.width), palette.TEXT).strip(width))
    if not strips and height > 0:
        strips.append(Line((" nothing so far", palette.FAINT)).strip(width))
    return (strips + [blank(width)] * height)[:height]
