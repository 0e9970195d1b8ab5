"""Brings tuning into the application: the worker thread, the look every half second, the panel, and leaving."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from bqltop.model import Event, Sample
from bqltop.tui.draw.head import device_title
from bqltop.tui.screens.leave import LeaveScreen
from bqltop.tui.tuning import Tuning
from bqltop.tui.widgets.tune_panel import TunePanel
from bqltop.tuning.session import Maker

if TYPE_CHECKING:
    from bqltop.tui.app import BqltopApp

LOOK_EVERY_S = 0.5
"""Trials end, and somebody else's changes are seen, within a second."""
PANEL = "side"


class TunerSide:
    """One Tuning for each device of the run; ``tuning`` is that of the device on the screen. Everything
    blocking runs in one thread, in order. ``make`` as Tuning has it; ``policy`` is what leaving does."""

    def __init__(self, app: BqltopApp, make: Maker | None, policy: str | None = None) -> None:
        self.make, self.policy = make, policy
        self._app = app
        self._tunings: dict[int, Tuning] = {}
        self._thread = ThreadPoolExecutor(1, "bqltop-tuner")
        self._looking: set[int] = set()

    @property
    def stream(self) -> int:
        return self._app.stream

    @property
    def tuning(self) -> Tuning:
        return self._of(self.stream)

    def _of(self, stream: int) -> Tuning:
        return self._tunings.setdefault(stream, Tuning(self.make))

    def take(self, sample: Sample) -> None:
        """Every sample of every device."""
        if self.make is not None:
            self._of(sample.stream).take(sample)

    def start(self) -> None:
        if self.make is not None:
            self._app.set_interval(LOOK_EVERY_S, self.look)

    def holds(self, stream: int) -> bool:
        """Whether changes of this device are in force."""
        return stream in self._tunings and bool(self._tunings[stream].in_force)

    def forget(self, stream: int) -> None:
        """Let go of a device that is not watched any more."""
        tuning = self._tunings.pop(stream, None)
        if tuning is not None:
            self._thread.submit(tuning.leave, None)

    def look(self) -> None:
        """What must be done now and then, of every device; not again while the last time is not over."""
        for stream, tuning in list(self._tunings.items()):
            if stream not in self._looking:
                self._looking.add(stream)
                self._app.run_worker(self._look(stream, tuning), group="tuning")

    async def _look(self, stream: int, tuning: Tuning) -> None:
        try:
            self._note(stream, await self._in_thread(tuning.attach), marked=False)
            self._note(stream, await self._in_thread(tuning.poll))
            await self._in_thread(tuning.compare)
        finally:
            self._looking.discard(stream)
        self._redraw()

    def run(self, function: Callable[[], Iterable[Event] | None]) -> None:
        """Have a blocking function of the shown device's tuning done; its events are shown and marked on the chart, and
        the panel is drawn anew."""
        self._app.run_worker(self._run(self.stream, function), group="tuning")

    async def _run(self, stream: int, function: Callable[[], Iterable[Event] | None]) -> None:
        self._note(stream, await self._in_thread(function))
        self._redraw()

    async def _in_thread(self, function: Callable[[], Iterable[Event] | None]) -> list[Event]:
        found = await asyncio.get_running_loop().run_in_executor(self._thread, function)
        return list(found or ())

    def _note(self, stream: int, events: list[Event], marked: bool = True) -> None:
        if events and stream in self._app.feeds:
            self._app.feeds[stream].note(events, marked)

    def _redraw(self) -> None:
        for panel in self._app.live.query(TunePanel):
            panel.redraw()

    async def toggle(self) -> None:
        """Open the panel, or close it."""
        live = self._app.live
        if live.query(TunePanel):
            await self.close()
            return
        panel = TunePanel(PANEL, lambda: self.tuning, self.run, self.close)
        await live.open_side(panel)
        panel.focus()
        if self.make is not None:
            self.run(self.tuning.load)
        self._app.draw_now()

    async def close(self) -> None:
        self.tuning.cancel()
        await self._app.live.close_side()
        self._app.draw_now()

    # -- leaving -------------------------------------------------------------------------------------------------

    def ask(self, leave: Callable[[], object]) -> None:
        """Leave at once, or after the question what shall become of the changes in force."""
        in_force = [self._named(stream, change.sentence)
                    for stream, tuning in self._tunings.items() for change in tuning.in_force]  # fmt: skip
        if not in_force or self.policy:
            leave()
            return
        if any(isinstance(screen, LeaveScreen) for screen in self._app.screen_stack):
            return  # it is being asked already

        def answered(answer: str | None) -> None:
            if answer:
                self.policy = answer
                leave()

        self._app.push_screen(LeaveScreen(in_force[::-1]), answered)

    def _named(self, stream: int, sentence: str) -> str:
        """Of several devices, which one it is about."""
        feeds = self._app.feeds
        sample = feeds[stream].sample if len(feeds) > 1 and stream in feeds else None
        return f"{device_title(sample.device)}: {sentence}" if sample else sentence

    def end(self) -> list[str]:
        """Follow the policy, after the screen is gone; what could not be taken back, as sentences."""
        self._thread.shutdown(wait=True, cancel_futures=True)
        backs = [(stream, back) for stream, tuning in self._tunings.items() for back in tuning.leave(self.policy)]
        return [self._named(stream, back.sentence) for stream, back in backs if back.refused]
