"""The tuning panel at the side of the live view: keys in, State out, the kernel asked in a worker thread."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from textual import events
from textual.strip import Strip

from bqltop.tui.draw import tune
from bqltop.tui.frame import Frame, View
from bqltop.tui.tuning import Tuning
from bqltop.tui.widgets.panel import Panel

KEYS = {
    "up": "move(-1)", "down": "move(1)", "pageup": "move(-8)", "pagedown": "move(8)", "home": "move(-1000)",
    "end": "move(1000)", "left": "queue(-1)", "right": "queue(1)", "plus": "step(1)", "equals_sign": "step(1)",
    "minus": "step(-1)", "enter": "enter", "tab": "trial", "y": "copy", "u": "undo", "U": "undo(True)", "k": "keep",
    "R": "restore", "escape": "back",
}  # fmt: skip
"""What the keys do; help.py tells it."""
ENDS_TYPING = {"enter", "tab", "escape", "up", "down"}


class TunePanel(Panel, can_focus=True):
    """``run(function)`` has a blocking function done in the worker thread and draws anew afterwards."""

    greys = False

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

    # -- keys ----------------------------------------------------------------------------------------------------

    async def on_key(self, event: events.Key) -> None:
        """Keys are taken here and not by bindings, which are looked at one message later: in a burst ("50", Enter, "q")
        what follows Enter would still be taken for a part of the value."""
        action = KEYS.get(event.key)
        if event.key == "tab" and self.tuning.state.draft is None:
            return  # the next device
        if self.tuning.state.typing and event.key not in ENDS_TYPING:
            if event.key != "backspace" and not event.is_printable:
                return
            self.tuning.type("" if event.key == "backspace" else event.character or "")
            self._planned()
        elif action is not None:
            await self.run_action(action)
        elif event.character and event.character.isascii() and event.character.isdigit():
            self.tuning.begin_typing(event.character)
            self._planned()
        else:
            return
        event.prevent_default()
        event.stop()

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
            self._go(trial=False)

    def action_trial(self) -> None:
        if self.tuning.state.draft is not None:
            self._go(trial=True)

    def _go(self, trial: bool) -> None:
        if self.tuning.end_typing():
            self._run(lambda: self.tuning.go(trial))

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
