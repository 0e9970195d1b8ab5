"""The panel at the side that shows the other end."""

from __future__ import annotations

from collections.abc import Callable

from textual.strip import Strip

from bqltop.tui.draw import both_ends
from bqltop.tui.frame import Frame, View
from bqltop.tui.widgets.panel import Panel


class BothEnds(Panel):
    """``other`` gives the newest Frame of the other end, None while there is none."""

    head = "the other end"
    greys = False

    def __init__(self, id: str, other: Callable[[], Frame | None]) -> None:
        super().__init__(id)
        self._other = other

    def draw(self, frame: Frame, view: View, width: int, height: int) -> list[Strip]:
        return both_ends.panel(self._other(), width, height)

    def note(self, frame: Frame, view: View) -> str:
        return "P closes"
