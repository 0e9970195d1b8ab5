"""A small menu of what the device is connected to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from rich.segment import Segment
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import ModalScreen
from textual.strip import Strip
from textual.widget import Widget

from bqltop.tui.draw import head, palette
from bqltop.tui.draw.line import Line, blank, cut, left, literal, rule

if TYPE_CHECKING:
    from bqltop.discovery.neighbours import Neighbour

KEYS = (("Enter", "go there"), ("↑ ↓", "choose"), ("Esc", "stay"))
MEANINGS = {
    "peer": "the other end of the pair",
    "lower": "what it sends through",
    "upper": "what sends through it",
    "master": "what it is a port of",
    "port": "a port of it",
}


def page(name: str, found: Sequence[Neighbour], chosen: int, width: int, height: int) -> list[Strip]:
    """The menu's lines."""
    lines = [rule(f"neighbours of {literal(name)}", width)]
    room = max(1, height - 2)
    first = max(0, min(chosen - room // 2, len(found) - room))
    for number, each in list(enumerate(found))[first : first + room]:
        title = literal(each.name) if each.name else f"index {each.ifindex}"
        if each.namespace is None:
            title += " (its namespace is out of reach)"
        elif each.namespace.name:
            title += f"@{literal(each.namespace.name)}"
        line = Line((" ▸ " if number == chosen else "   ", palette.STRONG), (left(each.relation, 8), palette.TITLE))
        room_for = max(24, width - 52)
        line.add(cut(title, room_for), palette.STRONG if each.name and each.namespace else palette.FAINT)
        kind = f"{literal(each.kind)}, " if each.kind else ""
        meaning = f"   {kind}{MEANINGS.get(each.relation, '')}"
        line.add(cut(meaning, width - line.width - 1), palette.DIM)
        strip = line.strip(width)
        if number == chosen:
            strip = Strip([Segment(s.text, s.style + palette.CURSOR) for s in strip], width)
        lines.append(strip)
    lines += [blank(width)] * (height - 1 - len(lines))
    return [*lines, head.keys(KEYS, width)]


class Menu(Widget):
    ALLOW_SELECT = False

    def __init__(self, name: str, found: Sequence[Neighbour]) -> None:
        super().__init__(id="menu")
        self.device, self.found, self.chosen = name, found, 0

    def render_line(self, y: int) -> Strip:
        width, height = self.size
        lines = page(self.device, self.found, self.chosen, width, height)
        return lines[y] if y < len(lines) else blank(width)


class NeighboursScreen(ModalScreen["Neighbour | None"]):
    """Dismissed with the chosen neighbour, or None."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down,j", "move(1)", "down", priority=True),
        Binding("up,k", "move(-1)", "up", priority=True),
        Binding("enter", "choose", "go there", priority=True),
        Binding("escape,q,n", "stay", "stay", priority=True),
    ]

    def __init__(self, name: str, found: Sequence[Neighbour]) -> None:
        super().__init__()
        self._menu = Menu(name, found)

    def compose(self) -> ComposeResult:
        yield self._menu

    def on_mount(self) -> None:
        menu = self._menu
        menu.styles.dock = "bottom"
        menu.styles.height = min(len(menu.found), 12) + 2

    def action_move(self, by: int) -> None:
        menu = self._menu
        menu.chosen = max(0, min(len(menu.found) - 1, menu.chosen + by))
        menu.refresh()

    def action_choose(self) -> None:
        self.dismiss(self._menu.found[self._menu.chosen])

    def action_stay(self) -> None:
        self.dismiss(None)
