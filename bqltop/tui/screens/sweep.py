"""The sweep's dialog: a line to type in, and the page below it."""

from __future__ import annotations

from functools import partial
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.strip import Strip
from textual.widgets import Input

from bqltop.tui.draw import sweep as draw
from bqltop.tui.screens.page import PageScreen
from bqltop.tui.sweeping import Sweeping


class SweepScreen(PageScreen):
    HINTS = (("Enter", "begin"), ("Esc", "stop, back"), ("Tab", "put the recommended one on trial"), ("PgUp PgDn", "page"))
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "stop, back", priority=True),
        Binding("tab", "try_out", "try the recommended one", priority=True),
        Binding("q", "noop", show=False),
    ]

    def __init__(self, sweeping: Sweeping) -> None:
        super().__init__()
        self._sweeping = sweeping

    def compose(self) -> ComposeResult:
        field = Input(placeholder="tx-usecs=0,50,100 limit_min=0,8 probe=peer", id="words")
        field.styles.dock = "top"
        yield field
        yield from super().compose()

    def on_mount(self) -> None:
        super().on_mount()
        self.query_one(Input).focus()

    def lines(self, width: int) -> list[Strip]:
        return draw.page(self._sweeping.state, width)

    def on_input_submitted(self, message: Input.Submitted) -> None:
        if not self._sweeping.state.running:
            self._sweeping.start(message.value)
            self.redraw()

    def redraw(self) -> None:
        """While it runs, keys are not for the field: any of them stops it."""
        super().redraw()
        field = self.query_one(Input)
        if field.disabled != self._sweeping.state.running:
            field.disabled = self._sweeping.state.running
            self.set_focus(None if field.disabled else field)

    def on_key(self, event: events.Key) -> None:
        if self._sweeping.state.running:
            self._sweeping.stop()
            event.stop()

    def action_leave(self) -> None:
        if self._sweeping.state.running:
            self._sweeping.stop()
        else:
            self.dismiss()

    def action_try_out(self) -> None:
        state, app = self._sweeping.state, self.app
        chosen = state.result.recommendation.setting if state.result and not state.running else None
        if chosen:
            app.tuner.run(partial(app.tuner.tuning.try_out, dict(chosen), None))
            self.dismiss()

    def action_noop(self) -> None:
        """q is a letter here."""
