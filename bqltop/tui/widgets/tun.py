"""The panel about a tun's holders."""

from __future__ import annotations

from textual.strip import Strip

from bqltop.tui.draw import tun
from bqltop.tui.frame import Frame, View
from bqltop.tui.widgets.panel import Panel


class TunPanel(Panel):
    head = "tun: who takes the packets"

    def title(self, frame: Frame, view: View) -> str:
        return self.head if self.size.width >= 64 else "holders"

    def draw(self, frame: Frame, view: View, width: int, height: int) -> list[Strip]:
        return tun.panel(frame, width, height)

    def note(self, frame: Frame, view: View) -> str:
        return tun.note(frame)
