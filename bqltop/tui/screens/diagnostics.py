"""The diagnostics page: bqltop about itself, drawn anew every half second while it is open."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.strip import Strip

from bqltop.tui.draw import diagnostics
from bqltop.tui.draw.diagnostics import State
from bqltop.tui.screens.page import PageScreen
from bqltop.versions import versions


class DiagnosticsScreen(PageScreen):
    """The kernel counts what our eBPF programs cost while this is open: it costs them some nanoseconds a run."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("d", "dismiss", "back", priority=True)]

    def __init__(self) -> None:
        super().__init__()
        self._versions = versions()
        self._no_account: str | None = "not a live device: nothing to count"

    def on_mount(self) -> None:
        if self.app.devices is not None:
            self._no_account = self.app.devices.account(True)

    def on_unmount(self) -> None:
        if self.app.devices is not None:
            self.app.devices.account(False)

    def lines(self, width: int) -> list[Strip]:
        app = self.app
        state = State(app.feed.sample, app.diagnosis.figures(), app.interval_s, self._versions, self._no_account)
        return diagnostics.page(state, width)
