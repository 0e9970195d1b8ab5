"""The chart: lanes of the history over a span of time, live or around a moment in the past."""

from __future__ import annotations

from rich.style import Style
from textual.strip import Strip

from bqltop.charted import PER_QUEUE
from bqltop.history import History
from bqltop.tui.draw import chart, palette
from bqltop.tui.draw.line import blank
from bqltop.tui.frame import Frame, View
from bqltop.tui.series import SERIES, Series
from bqltop.tui.widgets.panel import Panel

REDRAW_NS = 250_000_000
"""A column is half a second wide or more in the usual view: drawing it four times a second shows all there is."""


class Chart(Panel):
    head = "last minute"

    def __init__(self, id: str) -> None:
        super().__init__(id)
        self._known: tuple[History | None, set[str]] = (None, set())
        self._edge_ns: int | None = None
        self._drawn: tuple[tuple, int, list[Strip]] | None = None

    def title(self, frame: Frame, view: View) -> str:
        head = self.head if view.span_s == 60 else f"last {chart.ago(view.span_s)[1:]}"
        if len(frame.sample.queues) < 2:
            return head
        return f"{head}, {'worst or all queues' if view.selected is None else f'queue {view.selected}'}"

    def draw(self, frame: Frame, view: View, width: int, height: int) -> list[Strip]:
        key, now = (view, width, height, frame.history, len(frame.marks), frame.away), frame.sample.monotonic_ns
        if self._drawn and self._drawn[0] == key and 0 <= now - self._drawn[1] < (0 if view.still else REDRAW_NS):
            return list(self._drawn[2])
        lines = self._lanes(frame, view, width, height)
        self._drawn = (key, now, lines)
        return list(lines)

    def _lanes(self, frame: Frame, view: View, width: int, height: int) -> list[Strip]:
        series = self._with_data(frame, view)
        with_axis = height >= 5
        abreast, heights = chart.split(width, height - with_axis, len(series))
        lane_width = (width - (abreast - 1)) // abreast
        columns = max(2, (lane_width - chart.AXIS) * 2)
        end = self._end(frame, view, columns)
        cursor = None
        if view.cursor_ns is not None:
            cursor = max(0, min(columns // 2 - 1, int((1 - (end - view.cursor_ns) / 1e9 / view.span_s) * columns / 2)))
        lines: list[Strip] = []
        waiting = iter(series)
        for lane_height in heights:
            row: list[Strip] = []
            for _ in range(abreast):
                lane = self._lane(next(waiting, None), frame, view, end, columns, (lane_width, lane_height))
                if cursor is not None:
                    lane = [lane[0], *chart.with_cursor(lane[1:], cursor)]
                row = chart.beside(row, lane) if row else lane
            lines.extend(row)
        if with_axis:
            newest = (frame.history.span or (0, end))[1]
            marks = [(frame.sample.time_ns - mark + end - frame.sample.monotonic_ns) / 1e9 for mark in frame.marks]
            axis = [chart.axis(view.span_s, lane_width, marks, max(0.0, (newest - end) / 1e9))]
            lines.extend(chart.beside(axis, axis) if abreast > 1 else axis)
        return ([line.adjust_cell_length(width) for line in lines] + [blank(width)] * height)[:height]

    def _end(self, frame: Frame, view: View, columns: int) -> int:
        """The right edge (ns), on a fixed raster of columns: the chart moves by whole columns and its past keeps its
        shape. With a cursor the edge stays until the cursor leaves the span."""
        span, column = int(view.span_s * 1e9), max(1, int(view.span_s * 1e9) // columns)
        newest = (frame.history.span or (0, frame.sample.monotonic_ns))[1]
        edge = -(-(newest + 1) // column) * column
        if view.cursor_ns is not None:
            kept = self._edge_ns if self._edge_ns is not None else edge
            if not kept - span < view.cursor_ns <= kept:
                kept = min(edge, -(-(view.cursor_ns + span // 2) // column) * column)
            edge = kept
        self._edge_ns = edge
        return edge

    def _with_data(self, frame: Frame, view: View) -> list[Series]:
        """The series in the order chosen, of those that have had figures for this device."""
        if self._known[0] is not frame.history:
            self._known = (frame.history, set())
        known, span = self._known[1], frame.history.span
        for series in SERIES:
            if span and series.id not in known and frame.history.highest(series.id, None, span[1] - 5 * 10**9, span[1]) \
                    is not None:
                known.add(series.id)
        turned = [*SERIES[view.first_series :], *SERIES[: view.first_series]]
        return [series for series in turned if series.id in known] or [SERIES[view.first_series]]

    def _lane(self, series: Series | None, frame: Frame, view: View, end: int, columns: int,
              size: tuple[int, int]) -> list[Strip]:
        if series is None:
            return [blank(size[0])] * size[1]
        keep = round((frame.interval_s * 1.5 + 0.2) / view.span_s * columns)

        def spans(id: str) -> tuple:
            queue = view.selected if id in PER_QUEUE else None
            return frame.history.series(id, queue, end - int(view.span_s * 1e9), end, columns)

        def latest(points: tuple) -> float | None:
            """At the cursor, else the newest."""
            if view.cursor_ns is not None:
                points = points[: max(1, 1 + int((1 - (end - view.cursor_ns) / 1e9 / view.span_s) * columns))]
            return next((point[2] for point in reversed(points) if point), None)

        points = spans(series.id)
        over = spans(series.over) if series.over else ()
        top = latest(spans(series.top_from)) if series.top_from else None
        note = "needs eBPF" if series.by_ebpf and not frame.sees_state else ""
        lane = chart.Lane(series, chart.held(points, keep), latest(points), chart.held(over, keep), latest(over), top,
                          note, _style(series, frame))
        return chart.lane(lane, *size)


def _style(series: Series, frame: Frame) -> Style | None:
    """Time stopped has the colour of the one who stops most: the driver or BQL."""
    if series.id != "stopped_share" or frame.window is None:
        return None
    driver = sum(queue.stopped_driver_share or 0 for queue in frame.window.queues)
    return palette.BQL if sum(queue.stopped_bql_share or 0 for queue in frame.window.queues) > driver else None
