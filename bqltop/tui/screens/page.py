"""A page over the live screen that scrolls and is drawn anew while it is open."""

from __future__ import annotations

from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.screen import ModalScreen
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widget import Widget

from bqltop.tui.draw import head, palette
from bqltop.tui.draw.line import blank

NARROWEST = 20


class PageText(ScrollView, can_focus=True):
    """The lines of the page it belongs to, made anew for each width."""

    ALLOW_SELECT = False

    def __init__(self, id: str) -> None:
        super().__init__(id=id)
        self._lines: list[Strip] = []

    def on_resize(self, event: events.Resize) -> None:
        self.draw_lines()

    def draw_lines(self) -> None:
        width = self.scrollable_content_region.width
        self._lines = self.screen.lines(width) if width >= NARROWEST else []
        self.virtual_size = Size(width, len(self._lines))
        self.refresh()

    def render_line(self, y: int) -> Strip:
        row = y + round(self.scroll_offset.y)
        width = self.size.width
        if row >= len(self._lines):
            return blank(width)
        return self._lines[row].crop_extend(0, width, palette.TEXT)


class PageKeys(Widget):
    ALLOW_SELECT = False

    def render_line(self, y: int) -> Strip:
        return head.keys(self.screen.hints, self.size.width)

    def on_resize(self, event: events.Resize) -> None:
        self.refresh()


class PageScreen(ModalScreen):
    """Subclasses make the ``lines``; ``HINTS`` are the keys at the bottom. ``EVERY_S``: seconds after which the lines may be
    other ones; None: never."""

    EVERY_S: ClassVar[float | None] = 0.5
    HINTS: ClassVar[tuple[tuple[str, str], ...]] = (("Esc", "back"), ("↑ ↓", "scroll"))
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "dismiss", "back", priority=True),
        Binding("down,j", "scroll(1)", "down"),
        Binding("up,k", "scroll(-1)", "up"),
        Binding("pagedown,space", "page(1)", "page down"),
        Binding("pageup", "page(-1)", "page up"),
    ]

    @property
    def hints(self) -> tuple[tuple[str, str], ...]:
        """The keys that do something now."""
        return self.HINTS

    def lines(self, width: int) -> list[Strip]:
        """The whole page, ``width`` cells wide."""
        raise NotImplementedError

    def compose(self) -> ComposeResult:
        yield PageText("text")
        keys = PageKeys(id="page-keys")
        keys.styles.dock, keys.styles.height = "bottom", 1
        yield keys

    def on_mount(self) -> None:
        if self.EVERY_S is not None:
            self.set_interval(self.EVERY_S, self.redraw)
        self.redraw()

    def redraw(self) -> None:
        for text in self.query(PageText):
            text.draw_lines()
        for keys in self.query(PageKeys):
            keys.refresh()

    def action_scroll(self, lines: int) -> None:
        for text in self.query(PageText):  # none: a key came before the page, or after its end
            text.scroll_relative(y=lines, animate=False)

    def action_page(self, pages: int) -> None:
        for text in self.query(PageText):
            text.scroll_relative(y=pages * max(1, text.size.height - 2), animate=False)
