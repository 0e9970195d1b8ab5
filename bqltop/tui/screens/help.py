"""The help screen: every key, sign and column."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.strip import Strip

from bqltop.tui.draw import help
from bqltop.tui.screens.page import PageScreen


class HelpScreen(PageScreen):
    EVERY_S = None
    HINTS = (("Esc", "back"), ("↑ ↓", "scroll"), ("PgUp PgDn", "page"))
    BINDINGS: ClassVar[list[BindingType]] = [Binding("question_mark,h", "dismiss", "back", priority=True)]

    def lines(self, width: int) -> list[Strip]:
        return help.page(width)
