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

TURNING = ("pageup", "pagedown", "up", "down")


class SweepScreen(PageScreen):
    PAGE = ("PgUp PgDn", "page")
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "stop, back", priority=True),
        Binding("tab", "try_out", "try the recommended one", priority=True),
        Binding("q", "letter", show=False),
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

    @property
    def hints(self) -> tuple[tuple[str, str], ...]:
        if self._sweeping.state.running:
            return ("any other key", "stop"), self.PAGE
        trial = (("Tab", "put the recommended one on trial"),) if self._recommended else ()
        return ("Enter", "begin"), ("Esc", "back"), *trial, self.PAGE

    def lines(self, width: int) -> list[Strip]:
        return draw.page(self._sweeping.state, width)

    def on_input_submitted(self, message: Input.Submitted) -> None:
        if not self._sweeping.state.running:
            self._sweeping.start(message.value)
            self.redraw()

    def redraw(self) -> None:
        """While it runs, keys are not for the field: any of them stops it, but those that turn the page."""
        super().redraw()
        field = self.query_one(Input)
        if field.disabled != self._sweeping.state.running:
            field.disabled = self._sweeping.state.running
            self.set_focus(None if field.disabled else field)

    def on_key(self, event: events.Key) -> None:
        if self._sweeping.state.running and event.key not in TURNING:
            self._sweeping.stop()
            event.stop()

    def action_leave(self) -> None:
        if self._sweeping.state.running:
            self._sweeping.stop()
        else:
            self.dismiss()

    @property
    def _recommended(self) -> dict[str, str] | None:
        state = self._sweeping.state
        return dict(state.result.recommendation.setting or ()) if state.result and not state.running else None

    def action_try_out(self) -> None:
        chosen, tuner = self._recommended, self.app.tuner
        if self._sweeping.state.running:
            self._sweeping.stop()
        elif chosen:
            tuner.run(partial(tuner.tuning.try_out, chosen, None))
            self.dismiss()

    def action_letter(self) -> None:
        """q is a letter here, and while it runs a key like any other."""
        if self._sweeping.state.running:
            self._sweeping.stop()
