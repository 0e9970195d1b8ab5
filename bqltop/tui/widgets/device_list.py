"""The list of all devices: a screenful of ready-made lines, of which only those that change are painted anew."""

from __future__ import annotations

from textual import events
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from bqltop.tui.devices import DeviceTable
from bqltop.tui.draw import devices
from bqltop.tui.draw.line import blank


class DeviceList(Widget, can_focus=True):
    ALLOW_SELECT = False

    def __init__(self, table: DeviceTable) -> None:
        super().__init__(id="devices")
        self.table = table
        self._lines: list[Strip] = []

    def redraw(self) -> None:
        width, height = self.size
        if not width or not height:
            return
        before, self._lines = self._lines, devices.page(self.table, width, height)
        if len(before) != len(self._lines):
            self.refresh()
            return
        changed = [Region(0, y, width, 1) for y, line in enumerate(self._lines) if line != before[y]]
        if changed:
            self.refresh(*changed)

    def render_line(self, y: int) -> Strip:
        if y < len(self._lines):
            line = self._lines[y]
            return line if line.cell_length == self.size.width else line.crop_extend(0, self.size.width, None)
        return blank(self.size.width)

    def on_resize(self, event: events.Resize) -> None:
        self._lines = []
        self.redraw()
