"""The tuning panel at the side of the live view: keys in, State out, the kernel asked in a worker thread."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.strip import Strip

from bqltop.tui.draw import tune
from bqltop.tui.frame import Frame, View
from bqltop.tui.tuning import Tuning
from bqltop.tui.widgets.panel import Panel


class TunePanel(Panel, can_focus=True):
    """``run(function)`` has a blocking function done in the worker thread and draws anew afterwards."""

    greys = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "move(-1)", "knob above"),
        Binding("down", "move(1)", "knob below"),
        Binding("pageup", "move(-8)", "knobs above"),
        Binding("pagedown", "move(8)", "knobs below"),
        Binding("home", "move(-1000)", "first knob"),
        Binding("end", "move(1000)", "last knob"),
        Binding("left", "queue(-1)", "queue before"),
        Binding("right", "queue(1)", "next queue"),
        Binding("plus,equals_sign", "step(1)", "step up"),
        Binding("minus", "step(-1)", "step down"),
        Binding("enter", "enter", "type or apply"),
        Binding("tab", "trial", "apply on trial"),
        Binding("y", "copy", "copy the command"),
        Binding("u", "undo", "undo"),
        Binding("U", "undo(True)", "undo all"),
        Binding("k", "keep", "keep the trial"),
        Binding("R", "restore", "restore what an earlier run left"),
        Binding("escape", "back", "leave the value, or close"),
    ]

    def __init__(self, id: str, tuning: Callable[[], Tuning], run: Callable[..., None],
                 close: Callable[[], Awaitable[None]]) -> None:  # fmt: skip
        super().__init__(id)
        self._tuning, self._run, self._close = tuning, run, close

    @property
    def tuning(self) -> Tuning:
        """That of the device on the screen."""
        return self._tuning()

    def draw(self, frame: Frame, view: View, width: int, height: int) -> list[Strip]:
        return tune.panel(self.tuning.state, frame.sample.device.name, self.tuning.clock(), width, height)

    def redraw(self) -> None:
        if self.shown:
            self.show(*self.shown)

    # -- keys ----------------------------------------------------------------------------------------------------

    def on_key(self, event: events.Key) -> None:
        """While a value is typed every character belongs to it; digits begin to type one."""
        typing = self.tuning.state.typing
        if typing and event.key == "backspace":
            self.tuning.type("")
        elif typing and event.is_printable:
            self.tuning.type(event.character or "")
        elif event.character and event.character.isascii() and event.character.isdigit():
            self.tuning.begin_typing(event.character)
        else:
            return
        event.prevent_default()
        event.stop()
        self._planned()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Letters and signs are no commands while a value is typed."""
        return not (self.tuning.state.typing and action in ("step", "copy", "undo", "keep", "restore", "queue"))

    def _planned(self) -> None:
        self.redraw()
        if self.tuning.state.draft is not None and not self.tuning.state.fault:
            self._run(self.tuning.plan)

    def action_move(self, by: int) -> None:
        self.tuning.move(by)
        self.redraw()

    def action_queue(self, by: int) -> None:
        self.tuning.choose_queue(by)
        self._run(self.tuning.load)

    def action_step(self, direction: int) -> None:
        self.tuning.step(direction)
        self._planned()

    def action_enter(self) -> None:
        if self.tuning.state.draft is None:
            self.tuning.begin_typing()
            self._planned()
        else:
            self._run(lambda: self.tuning.go(trial=False))

    def action_trial(self) -> None:
        if self.tuning.state.draft is not None:
            self._run(lambda: self.tuning.go(trial=True))

    def action_copy(self) -> None:
        """The command, into the terminal's clipboard (OSC 52)."""
        plan = self.tuning.state.plan
        if plan is not None:
            self.app.copy_to_clipboard(plan.command)

    def action_undo(self, all: bool = False) -> None:
        self._run(lambda: self.tuning.undo(all))

    def action_keep(self) -> None:
        self._run(self.tuning.keep)

    def action_restore(self) -> None:
        self._run(self.tuning.restore)

    async def action_back(self) -> None:
        if self.tuning.cancel():
            self.redraw()
        else:
            await self._close()
