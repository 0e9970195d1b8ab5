"""The line of tabs, there when more than one device is watched."""

from __future__ import annotations

from collections.abc import Sequence

from textual.strip import Strip

from bqltop.tui.draw import tabs
from bqltop.tui.frame import Frame, View
from bqltop.tui.tabs import Entry
from bqltop.tui.widgets.panel import Panel


class TabLine(Panel):
    greys = False

    def __init__(self, id: str) -> None:
        super().__init__(id)
        self.entries: Sequence[Entry] = ()

    def draw(self, frame: Frame, view: View, width: int, height: int) -> list[Strip]:
        return [tabs.line(self.entries, width)]
