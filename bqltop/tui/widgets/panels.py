"""Qdisc tree, NAPI and events."""

from __future__ import annotations

from textual.strip import Strip

from bqltop.tui.draw import panels
from bqltop.tui.frame import Frame, View
from bqltop.tui.widgets.panel import Panel


class Qdiscs(Panel):
    head = "qdisc"

    def draw(self, frame: Frame, view: View, width: int, height: int) -> list[Strip]:
        return panels.qdiscs(frame, width, height)


class Napi(Panel):
    head = "NAPI"

    def draw(self, frame: Frame, view: View, width: int, height: int) -> list[Strip]:
        return panels.napi(frame, width, height)


class Events(Panel):
    head = "events"
    greys = False

    def draw(self, frame: Frame, view: View, width: int, height: int) -> list[Strip]:
        return panels.events(frame.events, width, height)
