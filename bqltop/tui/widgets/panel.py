"""The base of all panels: a rectangle of ready-made lines."""

from __future__ import annotations

from typing import ClassVar

from textual import events
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from bqltop.tui.draw.line import blank, greyed, rule
from bqltop.tui.frame import Frame, View


class Panel(Widget):
    """Shows what ``draw`` makes of the newest Frame.

    ``head`` is the title in a rule on the first line; without one the whole height belongs to ``draw``. ``greys``
    says whether the panel's values turn grey while the device is away.
    """

    ALLOW_SELECT = False
    head: ClassVar[str] = ""
    greys: ClassVar[bool] = True

    def __init__(self, id: str) -> None:
        super().__init__(id=id)
        self._lines: list[Strip] = []
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
        before, self._lines = self._lines, lines
        if len(before) != len(lines):
            self.refresh()
            return
        changed = [Region(0, y, width, 1) for y, line in enumerate(lines) if line != before[y]]
        if changed:
            self.refresh(*changed)

    def render_line(self, y: int) -> Strip:
        if y < len(self._lines):
            line = self._lines[y]
            # After a resize a line may be drawn once more before the new ones are made.
            return line if line.cell_length == self.size.width else line.crop_extend(0, self.size.width, None)
        return blank(self.size.width)

    def on_resize(self, event: events.Resize) -> None:
        if self.shown:
            self._lines = []
            self.show(*self.shown)
