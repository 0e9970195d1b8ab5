"""The line of tabs."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len
from textual.strip import Strip

from bqltop import format as fmt
from bqltop.tui.draw import palette
from bqltop.tui.draw.line import Line, cut_within, literal
from bqltop.tui.tabs import Entry


def title(entry: Entry, room: int) -> str:
    """The device's name and network namespace in so many cells: of the name as much as possible, then of the namespace; each
    is cut within, for names that begin alike end differently."""
    name, netns = cut_within(literal(entry.device.name), room), entry.device.netns
    left = room - cell_len(name) - 1
    return name if not netns or left < 1 else f"{name}@{cut_within(literal(netns), left)}"


def line(entries: Sequence[Entry], width: int) -> Strip:
    """Every tab: its number, its device, how long it was stopped. The one that is shown stands between brackets. Where
    there is no room for all, those near the shown one are kept."""
    shown = next((place for place, entry in enumerate(entries) if entry.shown), 0)
    room = max(8, min(40, width // max(1, len(entries)) - 12))
    texts = [_texts(entry, room) for entry in entries]
    first, last = _fitting([sum(map(cell_len, each)) + 3 for each in texts], shown, width - 4)
    line = Line((" " if first == 0 else "‹ ", palette.DIM))
    for entry, (number, name, figure) in list(zip(entries, texts, strict=True))[first : last + 1]:
        line.add("[" if entry.shown else " ", palette.STRONG).add(number, palette.DIM)
        line.add(name, palette.STRONG if entry.shown else palette.TEXT)
        line.add(figure, palette.NOTICE if entry.away else palette.DRIVER if entry.stopped else palette.DIM)
        line.add("] " if entry.shown else "  ", palette.STRONG)
    if last + 1 < len(entries):
        line.add("›", palette.DIM)
    return line.strip(width)


def _texts(entry: Entry, room: int) -> tuple[str, str, str]:
    figure = "away" if entry.away else "-" if entry.stopped is None else f"stopped {fmt.share(entry.stopped)}"
    return f"{entry.number} ", title(entry, room), f" {figure}"


def _fitting(widths: Sequence[int], shown: int, room: int) -> tuple[int, int]:
    """The first and the last of the tabs that fit, the shown one among them."""
    first = last = shown
    used = widths[shown] if widths else 0
    while True:
        if last + 1 < len(widths) and used + widths[last + 1] <= room:
            last += 1
            used += widths[last]
        elif first > 0 and used + widths[first - 1] <= room:
            first -= 1
            used += widths[first]
        else:
            return first, last
