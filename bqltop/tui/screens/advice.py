"""What to do: advice for the verdicts of the moment the page was opened; a digit puts one on trial."""

from __future__ import annotations

from functools import partial
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.strip import Strip

from bqltop.advice import Advice, advise_all, still_open
from bqltop.tui.draw import advice as draw
from bqltop.tui.frame import Frame
from bqltop.tui.screens.page import PageScreen
from bqltop.tui.widgets.tune_panel import TunePanel


class AdviceScreen(PageScreen):
    """The page does not change while it is read: what a digit means must stay what it was."""

    TRY = ("1 2 ..", "put on trial")
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("a", "dismiss", "back", priority=True),
        *(Binding(str(number), f"try_out({number})", f"try {number}") for number in range(1, draw.MOST + 1)),
    ]

    def __init__(self, frame: Frame) -> None:
        super().__init__()
        self._verdicts = frame.verdicts
        settings = self.app.tuner.tuning.state.settings
        self._advice: tuple[Advice, ...] = still_open(advise_all(frame.verdicts, frame.window), settings)

    @property
    def _why_not(self) -> str | None:
        tuning = self.app.tuner.tuning
        if tuning.tuner is None:
            return tuning.state.unavailable or "the settings are being read"
        return "bqltop runs with --read-only" if tuning.tuner.read_only else None

    @property
    def hints(self) -> tuple[tuple[str, str], ...]:
        possible = not self._why_not and any(one.applicable for one in self._advice)
        return (self.HINTS[0], self.TRY, *self.HINTS[1:]) if possible else self.HINTS

    def lines(self, width: int) -> list[Strip]:
        return draw.page(self._verdicts, self._advice, self._why_not, width)

    def action_try_out(self, number: int) -> None:
        if number > len(self._advice) or self._why_not:
            return
        one = self._advice[number - 1]
        if not one.applicable:
            return
        app = self.app
        app.tuner.run(partial(app.tuner.tuning.try_out, one.assignments, one.queue))
        self.dismiss()
        if not app.live.query(TunePanel):  # there the trial counts down, and can be kept
            app.call_later(app.action_tune)
