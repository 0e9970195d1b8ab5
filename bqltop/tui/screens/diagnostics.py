"""The diagnostics page: bqltop about itself, drawn anew every half second while it is open."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.screen import ModalScreen

from bqltop.tui.draw import diagnostics
from bqltop.tui.draw.diagnostics import State
from bqltop.tui.screens.help import HelpKeys, HelpText
from bqltop.versions import versions

EVERY_S = 0.5


class Page(HelpText):
    """The help page's scrolling, with lines of our own."""

    state = State()

    def on_resize(self) -> None:
        self.draw_lines()

    def show(self, state: State) -> None:
        self.state = state
        self.draw_lines()

    def draw_lines(self) -> None:
        width = self.scrollable_content_region.width
        self._lines = diagnostics.page(self.state, width) if width >= 20 else []
        self.virtual_size = Size(width, len(self._lines))
        self.refresh()


class DiagnosticsScreen(ModalScreen):
    """The kernel counts what our eBPF programs cost while this is open: it costs them some nanoseconds a run."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,d,q", "dismiss", "back", priority=True),
        Binding("down,j", "scroll(1)", "down"),
        Binding("up,k", "scroll(-1)", "up"),
        Binding("pagedown,space", "page(1)", "page down"),
        Binding("pageup", "page(-1)", "page up"),
    ]

    def __init__(self) -> None:
        super().__init__()
        self._versions = versions()
        self._no_account: str | None = "not a live device: nothing to count"

    def compose(self) -> ComposeResult:
        yield Page("text")
        keys = HelpKeys("help-keys")
        keys.styles.dock, keys.styles.height = "bottom", 1
        yield keys

    def on_mount(self) -> None:
        if self.app.devices is not None:
            self._no_account = self.app.devices.account(True)
        self.set_interval(EVERY_S, self.draw_now)
        self.draw_now()

    def on_unmount(self) -> None:
        if self.app.devices is not None:
            self.app.devices.account(False)

    def draw_now(self) -> None:
        app = self.app
        state = State(app.feed.sample, app.diagnosis.figures(), app.interval_s, self._versions, self._no_account)
        self.query_one(Page).show(state)

    def action_scroll(self, lines: int) -> None:
        self.query_one(Page).scroll_relative(y=lines, animate=False)

    def action_page(self, pages: int) -> None:
        page = self.query_one(Page)
        page.scroll_relative(y=pages * max(1, page.size.height - 2), animate=False)
