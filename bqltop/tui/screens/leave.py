"""Asked on leaving while changes are in force: keep them, or take them back?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import ModalScreen
from textual.strip import Strip
from textual.widget import Widget

from bqltop.tui.draw import palette
from bqltop.tui.draw.line import Line, blank, cut, literal, rule

KEYS = (("k", "keep them"), ("r", "take them back"), ("Esc", "stay"))


class Question(Widget):
    """The question and what it is about."""

    ALLOW_SELECT = False

    def __init__(self, sentences: Sequence[str]) -> None:
        super().__init__(id="question")
        self._sentences = sentences

    def render_line(self, y: int) -> Strip:
        width, height = self.size
        lines = [rule("leaving, with changes in force", width), blank(width)]
        room = max(1, height - 5)
        lines += [Line((cut(f"  {literal(text)}", width), palette.TEXT)).strip(width) for text in self._sentences[:room]]
        if len(self._sentences) > room:
            lines[-1] = Line((f"  and {len(self._sentences) - room + 1} more", palette.DIM)).strip(width)
        keys = Line(("  ", palette.TEXT))
        for key, text in KEYS:
            keys.add(key, palette.STRONG).add(f" {text}   ", palette.DIM)
        lines += [blank(width), keys.strip(width)]
        return lines[y] if y < len(lines) else blank(width)


class LeaveScreen(ModalScreen[str | None]):
    """Dismissed with "keep", "revert", or None for staying."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("k", "answer('keep')", "keep", priority=True),
        Binding("r", "answer('revert')", "take back", priority=True),
        Binding("escape,q", "answer('')", "stay", priority=True),
    ]

    def __init__(self, sentences: Sequence[str]) -> None:
        super().__init__()
        self._sentences = sentences

    def compose(self) -> ComposeResult:
        yield Question(self._sentences)

    def action_answer(self, answer: str) -> None:
        self.dismiss(answer or None)
