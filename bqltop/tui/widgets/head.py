"""The header, the verdict, the key hints, and what stands in a window that is too small."""

from __future__ import annotations

from textual.strip import Strip

from bqltop.tui.arrange import LEAST
from bqltop.tui.draw import head
from bqltop.tui.frame import Frame, View
from bqltop.tui.widgets.panel import Panel

HINTS = (
    ("?", "help"), ("q", "quit"), ("space", "pause"), ("t", "tune"), ("+ -", "rate"), ("s", "sort"),
    ("z", "idle queues"), ("c", "chart"), ("↑ ↓", "queue"),
)


class Header(Panel):
    greys = False

    def draw(self, frame: Frame, view: View, width: int, height: int) -> list[Strip]:
        return head.header(frame, view, width, height)


class VerdictLines(Panel):
    greys = False

    def draw(self, frame: Frame, view: View, width: int, height: int) -> list[Strip]:
        return head.verdict(frame.verdicts, width, height)


class Keys(Panel):
    greys = False

    def __init__(self, id: str, hints: tuple[tuple[str, str], ...] = HINTS) -> None:
        super().__init__(id)
        self.hints = hints

    def draw(self, frame: Frame, view: View, width: int, height: int) -> list[Strip]:
        hints = [(key, "go on" if key == "space" and view.paused else text) for key, text in self.hints]
        return [head.keys(hints, width)]


class TooSmall(Panel):
    """Draws itself without a Frame: the window may be too small from the start."""

    def render_line(self, y: int) -> Strip:
        width, height = self.size
        return head.too_small(width, height, LEAST)[y]

    def show(self, frame: Frame, view: View) -> None:
        pass
