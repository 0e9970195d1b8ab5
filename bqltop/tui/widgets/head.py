"""The header, the verdict, the key hints, and what stands in a window that is too small."""

from __future__ import annotations

from textual.strip import Strip

from bqltop.tui.arrange import LEAST
from bqltop.tui.draw import head, palette
from bqltop.tui.draw.line import Line, literal
from bqltop.tui.frame import Frame, View
from bqltop.tui.tape import BADGE as TAPE_BADGE
from bqltop.tui.widgets.panel import Panel

FIRST = (("?", "help"), ("q", "quit"), ("t", "tune"), ("a", "advice"), ("space", "pause"))
"""The keys that everybody needs: they fit in any window."""
GOING = (("l", "devices"), ("p", "peer"), ("n", "neighbours"), ("P", "both ends"))
"""Only where there are other devices to go to: not in a replay."""
HINTS = (
    *FIRST, *GOING[:2], ("e", "events"), ("r", "record"), ("b B", "compare"), ("↑ ↓", "queue"), ("← →", "time"), ("x", "span"),
    *GOING[2:], ("S", "sweep"), ("+ -", "rate"), ("s", "sort"), ("z", "idle queues"), ("c", "chart"), ("d", "diagnostics"),
)
TAPE_HINTS = (
    ("?", "help"), ("q", "quit"), ("space", "stop, go on"), ("← →", "step"), (", .", "second"), ("[ ]", "minute"),
    ("< >", "event"), ("+ -", "speed"), ("x", "span"), ("e", "events"), ("a", "advice"), ("c", "chart"), ("s", "sort"),
    ("z", "idle queues"),
)
"""While a recording is played."""
SAID_S = 6.0


class Header(Panel):
    greys = False

    def draw(self, frame: Frame, view: View, width: int, height: int) -> list[Strip]:
        return head.header(frame, view, width, height)


class VerdictLines(Panel):
    """``waiting`` stands here until the first sample has come."""

    greys = False

    def __init__(self, id: str, waiting: str = "") -> None:
        super().__init__(id)
        self._waiting = waiting

    def render_line(self, y: int) -> Strip:
        if self.shown is None and y == 0 and self._waiting:
            return Line((f" ·  {literal(self._waiting)}", palette.DIM)).strip(self.size.width)
        return super().render_line(y)

    def draw(self, frame: Frame, view: View, width: int, height: int) -> list[Strip]:
        return head.verdict(frame.verdicts, width, height)


class Keys(Panel):
    greys = False

    def __init__(self, id: str, hints: tuple[tuple[str, str], ...] = HINTS) -> None:
        super().__init__(id)
        self.hints = hints
        self._said = ""

    def say(self, text: str) -> None:
        """Show ``text`` instead of the hints for SAID_S seconds."""
        self._said = text
        if text:
            self.set_timer(SAID_S, lambda: self._forget(text))
        self.redraw()

    def _forget(self, text: str) -> None:
        if self._said == text:
            self._said = ""
            self.redraw()

    def draw(self, frame: Frame, view: View, width: int, height: int) -> list[Strip]:
        if self._said:
            return [head.said(self._said, width)]
        playing = any(badge.startswith(TAPE_BADGE) for badge in view.badges)
        shown = TAPE_HINTS if playing and self.hints is HINTS else self.hints
        several = (("Tab", "device"),) if view.device[1] > 1 else ()
        here = shown if self.app.devices is not None else [hint for hint in shown if hint not in GOING]
        several_at = len(FIRST) if shown is HINTS else 0
        ordered = (*here[:several_at], *several, *here[several_at:])
        hints = [(key, "go on" if key == "space" and view.paused else text) for key, text in ordered]
        return [head.keys(hints, width)]


class TooSmall(Panel):
    """Draws itself without a Frame: the window may be too small from the start."""

    def render_line(self, y: int) -> Strip:
        width, height = self.size
        return head.too_small(width, height, LEAST)[y]

    def show(self, frame: Frame, view: View) -> None:
        pass
