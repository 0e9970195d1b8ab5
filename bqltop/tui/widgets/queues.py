"""The TX-queue table: scrolls, sorts, folds idle queues, and selects one for the chart."""

from __future__ import annotations

from textual.strip import Strip

from bqltop.tui.draw import queues
from bqltop.tui.draw.line import Line, blank
from bqltop.tui.draw.palette import FAINT
from bqltop.tui.frame import Frame, Row, View, rows
from bqltop.tui.widgets.panel import Panel


class QueueTable(Panel):
    head = "TX queues"

    def __init__(self, id: str) -> None:
        super().__init__(id)
        self.scrolled = 0
        self._note = ""
        self._order: list[int] = []

    def wanted(self, frame: Frame, view: View) -> int:
        """Lines the whole table would take below its titles."""
        shown, folded = rows(frame, view)
        return max(1, len(shown) + bool(folded))

    def draw(self, frame: Frame, view: View, width: int, height: int) -> list[Strip]:
        shown, folded = rows(frame, view)
        self._order = [row.sample.index for row in shown]
        placed = queues.place(queues.columns_for(shown, width), width)
        room = max(0, height - 1)
        body = room - bool(folded) if room > 1 else room
        self._follow(shown, view, body)
        visible = shown[self.scrolled : self.scrolled + body]
        lines = [queues.header(placed, width, view.sort)]
        lines.extend(queues.row_strip(row, placed, width, row.sample.index == view.selected) for row in visible)
        if not shown:
            lines.append(Line(("  no TX queues", FAINT)).strip(width))
        if folded:
            lines.append(queues.folded_strip(folded, width))
        whole = f"{len(frame.sample.queues)}"
        if 0 < len(visible) < len(shown):
            whole = f"{self.scrolled + 1}-{self.scrolled + len(visible)} of {len(shown)}"
        sort = "" if view.sort == "queue" else f"by {view.sort}"
        rates = [(queue.index, queue.packets_per_s) for queue in frame.window.queues] if frame.window else ()
        self._note = ", ".join(filter(None, (queues.imbalance(rates), whole, sort)))
        return (lines + [blank(width)] * height)[:height]

    def note(self, frame: Frame, view: View) -> str:
        return self._note

    def step(self, view: View, by: int) -> int | None:
        """The queue ``by`` lines from the selected one; stepping up from the first selects none (all together)."""
        if not self._order:
            return None
        if view.selected not in self._order:
            return self._order[0 if by > 0 else -1]
        place = self._order.index(view.selected) + by
        if place < 0 and by == -1:
            return None
        return self._order[max(0, min(len(self._order) - 1, place))]

    def _follow(self, shown: list[Row], view: View, body: int) -> None:
        """Scroll so that the selected queue is in view and no room is left empty."""
        selected = next((n for n, row in enumerate(shown) if row.sample.index == view.selected), None)
        if selected is not None:
            self.scrolled = max(min(self.scrolled, selected), selected - body + 1)
        self.scrolled = max(0, min(self.scrolled, len(shown) - body)) if selected is not None or self.scrolled else 0
