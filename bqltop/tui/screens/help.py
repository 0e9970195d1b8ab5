"""The help screen: every key, sign and column."""

from __future__ import annotations

from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.screen import ModalScreen
from textual.scroll_view import ScrollView
from textual.strip import Strip

from bqltop.tui.draw import head, help, palette
from bqltop.tui.draw.line import blank
from bqltop.tui.widgets.panel import Panel

HINTS = (("Esc", "back"), ("↑ ↓", "scroll"), ("PgUp PgDn", "page"))


class HelpText(ScrollView, can_focus=True):
    """The page's lines, made anew for each width."""

    ALLOW_SELECT = False

    def __init__(self, id: str) -> None:
        super().__init__(id=id)
        self._lines: list[Strip] = []

    def on_resize(self, event: events.Resize) -> None:
        self.draw_lines()

    def draw_lines(self) -> None:
        """Other pages have their own. (Textual calls every class's on_resize: that one is not to be overridden.)"""
        width = self.scrollable_content_region.width
        self._lines = help.page(width) if width >= 20 else []
        self.virtual_size = Size(width, len(self._lines))

    def render_line(self, y: int) -> Strip:
        row = y + round(self.scroll_offset.y)
        width = self.size.width
        if row >= len(self._lines):
            return blank(width)
        return self._lines[row].crop_extend(0, width, palette.TEXT)


class HelpKeys(Panel):
    def render_line(self, y: int) -> Strip:
        return head.keys(HINTS, self.size.width)

    def on_resize(self, event: events.Resize) -> None:
        self.refresh()


class HelpScreen(ModalScreen):
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,question_mark,h,q", "dismiss", "back", priority=True),
        Binding("down,j", "scroll(1)", "down"),
        Binding("up,k", "scroll(-1)", "up"),
        Binding("pagedown,space", "page(1)", "page down"),
        Binding("pageup", "page(-1)", "page up"),
    ]

    def compose(self) -> ComposeResult:
        yield HelpText("text")
        keys = HelpKeys("help-keys")
        keys.styles.dock, keys.styles.height = "bottom", 1
        yield keys

    def action_scroll(self, lines: int) -> None:
        for text in self.query(HelpText):  # none: a key came before the page, or after its end
            text.scroll_relative(y=lines, animate=False)

    def action_page(self, pages: int) -> None:
        for text in self.query(HelpText):
            text.scroll_relative(y=pages * max(1, text.size.height - 2), animate=False)
