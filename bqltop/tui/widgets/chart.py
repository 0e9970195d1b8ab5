"""The chart of the last minute. Keeps one envelope per series and adds to it only what is new."""

from __future__ import annotations

from rich.style import Style
from textual.strip import Strip

from bqltop.tui.draw import chart, palette
from bqltop.tui.draw.braille import Envelope, Span
from bqltop.tui.draw.line import blank
from bqltop.tui.frame import Frame, View
from bqltop.tui.traces import SERIES, Series, Traces
from bqltop.tui.widgets.panel import Panel

SECONDS = 60.0


class Chart(Panel):
    """``marks`` are moments (CLOCK_REALTIME, ns) to show on the time axis: when something was changed."""

    head = "last minute"

    def __init__(self, id: str, traces: Traces) -> None:
        super().__init__(id)
        self._traces = traces
        self.marks: list[int] = []
        self._envelopes: dict[str, Envelope] = {}
        self._seen = 0
        self._made_for: tuple[int, int | None] = (0, None)

    def title(self, frame: Frame, view: View) -> str:
        if len(frame.sample.queues) < 2:
            return self.head
        return f"{self.head}, {'worst or all queues' if view.selected is None else f'queue {view.selected}'}"

    def draw(self, frame: Frame, view: View, width: int, height: int) -> list[Strip]:
        series = self._with_data(view)
        with_axis = height >= 5
        abreast, heights = chart.split(width, height - with_axis, len(series))
        lane_width = (width - (abreast - 1)) // abreast
        self._update((lane_width - chart.AXIS) * 2, view.selected)
        now = frame.sample.monotonic_ns / 1e9 if frame.sample.present else self._traces.now
        lines: list[Strip] = []
        waiting = iter(series)
        for lane_height in heights:
            row: list[Strip] = []
            for _ in range(abreast):
                each = next(waiting, None)
                lane = chart.lane(self._lane(each, now, frame, view), lane_width, lane_height) if each else \
                    [blank(lane_width)] * lane_height
                row = chart.beside(row, lane) if row else lane
            lines.extend(row)
        if with_axis:
            ago = [(frame.sample.time_ns - mark) / 1e9 for mark in self.marks]
            axis = [chart.axis(SECONDS, lane_width, ago)]
            lines.extend(chart.beside(axis, axis) if abreast > 1 else axis)
        return ([line.adjust_cell_length(width) for line in lines] + [blank(width)] * height)[:height]

    def _with_data(self, view: View) -> list[Series]:
        """The series in the order chosen, those that have figures for this device first."""
        turned = [*SERIES[view.first_series :], *SERIES[: view.first_series]]
        have = [series for series in turned if series.id in self._traces.known]
        return have or [SERIES[view.first_series]]

    def _lane(self, series: Series, now: float, frame: Frame, view: View) -> chart.Lane:
        hold = frame.interval_s * 1.5 + 0.2
        over: tuple[Span | None, ...] = ()
        if series.over and series.over in self._envelopes:
            over = tuple(self._envelopes[series.over].spans(now, hold))
        top = self._traces.latest(series.top_from, view.selected) if series.top_from else None
        note = "" if frame.sees_state or series.id not in ("stopped", "ring", "work") else "needs eBPF"
        latest = self._traces.latest(series.id, view.selected)
        over_latest = self._traces.latest(series.over, view.selected) if series.over else None
        spans = tuple(self._envelopes[series.id].spans(now, hold))
        return chart.Lane(series, spans, latest, over, over_latest, top, note, _style(series, frame))

    def _update(self, columns: int, selected: int | None) -> None:
        """Bring the envelopes up to the newest point; make them anew for another width or queue."""
        if (columns, selected) != self._made_for:
            self._made_for, self._seen = (columns, selected), 0
            ids = {series.id for series in SERIES} | {series.over for series in SERIES if series.over}
            self._envelopes = {id: Envelope(SECONDS, columns) for id in ids}
        new = self._traces.revision - self._seen
        self._seen = self._traces.revision
        if new:
            for id, envelope in self._envelopes.items():
                for at, value in self._traces.values(id, selected, last=new):
                    envelope.add(at, value)


def _style(series: Series, frame: Frame) -> Style | None:
    """Time stopped has the colour of the one who stops most: the driver or BQL."""
    if series.id != "stopped" or frame.window is None:
        return None
    driver = sum(queue.stopped_driver_share or 0 for queue in frame.window.queues)
    return palette.BQL if sum(queue.stopped_bql_share or 0 for queue in frame.window.queues) > driver else None
