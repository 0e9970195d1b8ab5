"""The base of all panels: what is drawn of a Frame."""

from __future__ import annotations

from typing import ClassVar

from textual.strip import Strip

from bqltop.tui.draw.line import greyed, rule
from bqltop.tui.frame import Frame, View
from bqltop.tui.widgets.lines import Lines


class Panel(Lines):
    """Shows what ``draw`` makes of the newest Frame.

    ``head`` is the title in a rule on the first line; without one the whole height belongs to ``draw``. ``greys``
    says whether the panel's values turn grey while the device is away.
    """

    head: ClassVar[str] = ""
    greys: ClassVar[bool] = True

    def __init__(self, id: str) -> None:
        super().__init__(id)
        self.shown: tuple[Frame, View] | None = None

    def draw(self, frame: Frame, view: View, width: int, height: int) -> list[Strip]:
        """The panel's lines, its head not counted, each ``width`` cells wide."""
        raise NotImplementedError

    def note(self, frame: Frame, view: View) -> str:
        """What stands at the right of the head."""
        return ""

    def title(self, frame: Frame, view: View) -> str:
        return self.head

    def show(self, frame: Frame, view: View) -> None:
        """Draw ``frame`` and ask for a repaint of the lines that differ from what is on the screen."""
        self.shown = frame, view
        width, height = self.size
        if not width or not height:
            return
        if self.head:
            lines = self.draw(frame, view, width, height - 1)
            lines.insert(0, rule(self.title(frame, view), width, self.note(frame, view)))
        else:
            lines = self.draw(frame, view, width, height)
        if frame.away and self.greys:
            lines = greyed(lines)
        self.put(lines)

    def redraw(self) -> None:
        """The same Frame again: the size or what is drawn beside it has changed."""
        if self.shown:
            self.show(*self.shown)
