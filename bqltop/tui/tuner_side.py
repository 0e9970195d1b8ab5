"""Brings tuning into the application: the worker thread, the look every half second, the panel, and leaving."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from bqltop.model import Event
from bqltop.tui.screens.leave import LeaveScreen
from bqltop.tui.tuning import Tuning
from bqltop.tui.widgets.chart import Chart
from bqltop.tui.widgets.tune_panel import TunePanel

if TYPE_CHECKING:
    from bqltop.tui.app import BqltopApp

LOOK_EVERY_S = 0.5
"""Trials end, and somebody else's changes are seen, within a second."""
PANEL = "side"


class TunerSide:
    """``tuning`` is the state; this is its way to the screen. Everything blocking runs in one thread, in order."""

    def __init__(self, app: BqltopApp, tuning: Tuning) -> None:
        self.tuning = tuning
        self._app = app
        self._thread = ThreadPoolExecutor(1, "bqltop-tuner")
        self._looking = False

    def start(self) -> None:
        if self.tuning.tunable:
            self._app.set_interval(LOOK_EVERY_S, self.look)

    def look(self) -> None:
        """What must be done now and then; not again while the last time is not over."""
        if not self._looking:
            self._looking = True
            self.run(self._look)

    def _look(self) -> list[Event]:
        try:
            found = [*self.tuning.attach(), *self.tuning.poll()]
            self.tuning.compare()
            return found
        finally:
            self._looking = False

    def run(self, function: Callable[[], Iterable[Event] | None]) -> None:
        """Have a blocking function done; its events are shown and marked on the chart, and the panel is drawn anew."""
        self._app.run_worker(self._run(function), group="tuning")

    async def _run(self, function: Callable[[], Iterable[Event] | None]) -> None:
        loop = asyncio.get_running_loop()
        events = list(await loop.run_in_executor(self._thread, function) or ())
        self._app.feed.events.extend(events)
        for chart in self._app.live.query(Chart):
            chart.marks.extend(event.time_ns for event in events)
        for panel in self._app.live.query(TunePanel):
            panel.redraw()

    async def toggle(self) -> None:
        """Open the panel, or close it."""
        live = self._app.live
        if live.query(TunePanel):
            await self.close()
            return
        panel = TunePanel(PANEL, self.tuning, self.run, self.close)
        await live.open_side(panel)
        panel.focus()
        if self.tuning.tunable:
            self.run(self.tuning.load)
        self._app.draw_now()

    async def close(self) -> None:
        self.tuning.cancel()
        await self._app.live.close_side()
        self._app.draw_now()

    # -- leaving -------------------------------------------------------------------------------------------------

    def ask(self, leave: Callable[[], object]) -> None:
        """Leave at once, or after the question what shall become of the changes in force."""
        in_force = self.tuning.in_force
        if not in_force or self.tuning.policy:
            leave()
            return

        def answered(answer: str | None) -> None:
            if answer:
                self.tuning.policy = answer
                leave()

        self._app.push_screen(LeaveScreen([change.sentence for change in reversed(in_force)]), answered)

    def end(self) -> list[str]:
        """Follow the policy, after the screen is gone; what could not be taken back, as sentences."""
        self._thread.shutdown(wait=True, cancel_futures=True)
        return [change.sentence for change in self.tuning.leave() if change.refused]
