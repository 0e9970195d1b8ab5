"""A and B side by side; b goes on marking while the page is open."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.strip import Strip

from bqltop.compare import Comparison
from bqltop.tui.draw import compare as draw
from bqltop.tui.screens.page import PageScreen


class CompareScreen(PageScreen):
    HINTS = (("Esc", "back"), ("b", "mark"), ("↑ ↓", "scroll"))
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("B", "dismiss", "back", priority=True),
        Binding("b", "app.mark", "mark"),
    ]

    def __init__(self, comparison: Comparison, queue: int | None) -> None:
        super().__init__()
        self._comparison, self._queue = comparison, queue

    def lines(self, width: int) -> list[Strip]:
        return draw.page(self._comparison, self._queue, width)
