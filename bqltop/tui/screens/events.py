"""The event log: everything that happened, filtered, and written to a file."""

from __future__ import annotations

import time
from pathlib import Path
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import ModalScreen
from textual.strip import Strip
from textual.widget import Widget

from bqltop import eventlog
from bqltop.tui.draw import eventlist, head

HINTS = (("Esc", "back"), ("↑ ↓", "scroll"), ("/", "filter"), ("w", "write to a file"))
LOOK_EVERY_S = 0.5


class EventPage(Widget, can_focus=True):
    """Everything of the screen in one widget; new events scroll in while its end is shown."""

    ALLOW_SELECT = False

    def __init__(self, id: str) -> None:
        super().__init__(id=id)
        self.wanted, self.typing, self.said = "", False, ""
        self._top: int | None = None
        self._lines: list[Strip] = []

    def on_mount(self) -> None:
        self.set_interval(LOOK_EVERY_S, self.look)

    def on_resize(self, event: events.Resize) -> None:
        self.look()

    def found(self) -> list:
        return self.app.feed.log.filter(text=self.wanted)

    def look(self) -> None:
        """Draw what there is now."""
        width, height = self.size
        if width < 2 or height < 2:
            self._lines = []
            return
        found = self.found()
        last = max(0, len(found) - (height - 3))
        top = last if self._top is None else min(self._top, last)
        lines = eventlist.page(found, len(self.app.feed.log), self.wanted, self.typing, top, width, height - 1)
        lines.append(head.said(self.said, width) if self.said else head.keys(HINTS, width))
        if lines != self._lines:
            self._lines = lines
            self.refresh()

    def render_line(self, y: int) -> Strip:
        return self._lines[y] if y < len(self._lines) else Strip.blank(self.size.width, head.palette.TEXT)

    def scroll_lines(self, by: int) -> None:
        """Down (past the end: follow what comes) or up."""
        last = max(0, len(self.found()) - (self.size.height - 3))
        top = max(0, (last if self._top is None else self._top) + by)
        self._top = None if top >= last else top
        self.look()

    def on_key(self, event: events.Key) -> None:
        """While a filter is being typed every key goes to it."""
        if not self.typing:
            return
        event.stop()
        event.prevent_default()
        if event.key in ("enter", "escape"):
            self.typing = False
            self.wanted = "" if event.key == "escape" else self.wanted
        elif event.key == "backspace":
            self.wanted = self.wanted[:-1]
        elif event.is_printable and event.character:
            self.wanted += event.character
        self._top = None
        self.look()


class EventsScreen(ModalScreen):
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,e,q", "dismiss", "back"),
        Binding("down,j", "scroll(1)", "down"),
        Binding("up,k", "scroll(-1)", "up"),
        Binding("pagedown,space", "scroll(10)", "page down"),
        Binding("pageup", "scroll(-10)", "page up"),
        Binding("home", "scroll(-1000000)", "first"),
        Binding("end", "scroll(1000000)", "last"),
        Binding("slash", "filter", "filter"),
        Binding("w", "write", "write to a file"),
    ]

    def compose(self) -> ComposeResult:
        yield EventPage("event-page")

    def on_mount(self) -> None:
        self.query_one(EventPage).focus()

    def action_scroll(self, by: int) -> None:
        for page in self.query(EventPage):
            page.scroll_lines(by)

    def action_filter(self) -> None:
        for page in self.query(EventPage):
            page.typing, page.said = True, ""
            page.look()

    def action_write(self) -> None:
        """The events shown, as text, to a new file in the present folder."""
        page = self.query_one(EventPage)
        path = Path.cwd() / f"bqltop-events-{time.strftime('%Y%m%d-%H%M%S')}.txt"
        try:
            with path.open("x", encoding="utf-8") as file:
                file.write(eventlog.export(page.found()))
            page.said = f"written to {path}"
        except OSError as error:
            page.said = f"cannot write {path}: {error.strerror or error}"
        page.look()
