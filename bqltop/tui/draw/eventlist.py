"""All events as a page, newest last, with a filter."""

from __future__ import annotations

from collections.abc import Sequence

from textual.strip import Strip

from bqltop import format as fmt
from bqltop.model import Event
from bqltop.tui.draw import palette
from bqltop.tui.draw.line import Line, blank, cut, left, literal, rule


def page(events: Sequence[Event], total: int, wanted: str, typing: bool, top: int, width: int, height: int) -> list[Strip]:
    """A head, the filter, and as many of ``events`` as fit from number ``top`` on."""
    note = f"{len(events)} of {total}" if wanted else f"{total}"
    lines = [rule("events", width, note), _filter(wanted, typing, width)]
    room = max(0, height - len(lines))
    lines.extend(_line(event, width) for event in events[top : top + room])
    if not events:
        lines.append(Line((" none" if not wanted else " none with this text", palette.FAINT)).strip(width))
    return (lines + [blank(width)] * height)[:height]


def _filter(wanted: str, typing: bool, width: int) -> Strip:
    line = Line((" / ", palette.DIM), (literal(wanted), palette.STRONG))
    if typing:
        line.add("▏", palette.NOTICE)
    elif not wanted:
        line.add("type / to see only events with a text or kind", palette.FAINT)
    return line.strip(width)


def _line(event: Event, width: int) -> Strip:
    queue = "" if event.queue is None else f"q{event.queue}"
    line = Line((f" {fmt.clock(event.time_ns, fraction=True)}  ", palette.DIM),
                (left(literal(event.kind), 10) + " ", palette.TITLE), (left(queue, 5) + " ", palette.TEXT))
    return line.add(cut(literal(event.text), width - line.width), palette.TEXT).strip(width)
