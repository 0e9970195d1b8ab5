"""The list of all devices."""

from __future__ import annotations

from bqltop.tui.devices import DeviceTable
from bqltop.tui.draw import devices
from bqltop.tui.widgets.lines import Lines


class DeviceList(Lines, can_focus=True):
    def __init__(self, table: DeviceTable) -> None:
        super().__init__("devices")
        self.table = table

    def redraw(self) -> None:
        width, height = self.size
        if width and height:
            self.put(devices.page(self.table, width, height))
