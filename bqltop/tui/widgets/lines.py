"""A rectangle of ready-made lines, of which only those that change are painted anew."""

from __future__ import annotations

from textual import events
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from bqltop.tui.draw.line import blank


class Lines(Widget):
    """Subclasses make the lines in ``redraw`` and hand them to ``put``."""

    ALLOW_SELECT = False

    def __init__(self, id: str) -> None:
        super().__init__(id=id)
        self._lines: list[Strip] = []

    def redraw(self) -> None:
        """Make the lines anew for the present size."""

    def put(self, lines: list[Strip]) -> None:
        """Show these lines; only those that differ from what is on the screen are painted."""
        before, self._lines = self._lines, lines
        if len(before) != len(lines):
            self.refresh()
            return
        changed = [Region(0, y, self.size.width, 1) for y, line in enumerate(lines) if line != before[y]]
        if changed:
            self.refresh(*changed)

    def render_line(self, y: int) -> Strip:
        if y < len(self._lines):
            line = self._lines[y]
            # After a resize a line may be drawn once more before the new ones are made.
            return line if line.cell_length == self.size.width else line.crop_extend(0, self.size.width, None)
        return blank(self.size.width)

    def on_resize(self, event: events.Resize) -> None:
        self._lines = []
        self.redraw()
