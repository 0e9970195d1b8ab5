"""The application: owns the source, hands Frames to the live screen, and knows the keys that work everywhere."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import ClassVar

from textual import events
from textual.app import App
from textual.binding import Binding, BindingType
from textual.timer import Timer

from bqltop.eventlog import Detector, finder
from bqltop.model import Sample
from bqltop.recording.replay import Replay
from bqltop.tui.comparing import Comparing
from bqltop.tui.diagnosis import Diagnosis
from bqltop.tui.feed import Feed
from bqltop.tui.going import Going, Opened
from bqltop.tui.messages import SamplesArrived, SourceEnded
from bqltop.tui.record import RecordKey
from bqltop.tui.run import run
from bqltop.tui.screens.advice import AdviceScreen
from bqltop.tui.screens.diagnostics import DiagnosticsScreen
from bqltop.tui.screens.events import EventsScreen
from bqltop.tui.screens.help import HelpScreen
from bqltop.tui.screens.live import LiveScreen
from bqltop.tui.screens.sweep import SweepScreen
from bqltop.tui.sweeping import Sweeping
from bqltop.tui.tape import Tape
from bqltop.tui.terminal import TerminalDriver
from bqltop.tui.tuner_side import TunerSide
from bqltop.tui.watcher import Watcher

__all__ = ["BqltopApp", "run"]

INTERVALS_S = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
DRAWING_SHARE = 8
"""Drawing takes at most one part in this many of the time, however slow the machine or wide the device."""
LONGEST_WAIT_S = 1.0
"""How long leaving may wait for the sample that is being taken."""


class BqltopApp(App[int]):
    """``source`` yields samples (see bqltop.source); ``tuner`` makes the tuner of the device a sample is of (see
    bqltop.tuning.session), ``policy`` is what leaving does with changes in force; ``devices`` is the list of
    all devices (see bqltop.roster), with which the screen begins if ``start_with_list``. Each is None where there is
    none. The source is closed by ``bqltop.tui.run``, not here."""

    CSS_PATH = Path(__file__).parent / "bqltop.tcss"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "quit", "quit"),
        Binding("ctrl+c", "quit", "quit", priority=True),
        Binding("ctrl+z", "suspend_process", "suspend", priority=True),
        Binding("question_mark,h,f1", "help", "help"),
        Binding("t", "tune", "tune"),
        Binding("l", "list", "all devices"),
        Binding("p", "peer", "the other end"),
        Binding("P", "both", "both ends side by side"),
        Binding("n", "neighbours", "neighbours"),
        Binding("d", "diagnostics", "diagnostics"),
        Binding("e", "events", "events"),
        Binding("r", "record", "record"),
        Binding("a", "advice", "what to do"),
        Binding("b", "mark", "mark A or B"),
        Binding("B", "compare", "A and B side by side"),
        Binding("S", "sweep", "try settings one after the other"),
        Binding("plus,equals_sign", "faster(1)", "refresh more often"),
        Binding("minus", "faster(-1)", "refresh less often"),
    ]

    def __init__(self, source, *, interval_s: float | None = None, tuner=None, policy: str | None = None,
                 devices=None, start_with_list: bool = False, read_only: bool = False,
                 driver_class=TerminalDriver) -> None:
        super().__init__(driver_class=driver_class)
        self.animation_level = "none"
        self.source, self.devices = source, devices
        self.interval_s = interval_s or source.interval
        self.failure: BaseException | None = None
        self._draw_after = 0.0
        self._due: Timer | None = None
        self.tape = Tape(source, self.say) if isinstance(source, Replay) else None
        self._read_only = read_only
        self._settings = tuner is None  # with one, it tells of every changed setting, and sooner
        self.record = RecordKey(source, settings=self._settings)
        self.feeds: dict[int, Feed] = {}
        self.stream = 0
        self.live = LiveScreen()
        self.watcher = Watcher(source, self.interval_s, self.post_message)
        self.tuner = TunerSide(self, tuner, policy)
        self.going = Going(self, devices)
        self.diagnosis = Diagnosis()
        self.comparing = Comparing(self)
        self.sweeping = Sweeping(self)
        self._start_with_list = start_with_list

    def get_default_screen(self) -> LiveScreen:
        return self.live

    async def on_event(self, event: events.Event) -> None:
        """Keys typed ahead (or a terminal's answers taken for keys) do nothing to a page that is not yet made."""
        if isinstance(event, events.Key) and not (self.screen_stack and self.screen.is_mounted):
            return
        await super().on_event(event)

    def on_mount(self) -> None:
        self.watcher.start()
        self.tuner.start()
        if self._start_with_list:
            self.going.show_list()

    def on_driver_signal_resume(self) -> None:
        """In the foreground again: other programs have written on the terminal. Textual itself draws everything anew
        only when the size has changed."""
        self.refresh(layout=True)

    # -- samples -------------------------------------------------------------------------------------------------

    def on_samples_arrived(self, message: SamplesArrived) -> None:
        for sample in self.watcher.drain():
            self.take(sample)
        # Under another screen nothing of the live view is seen: not worth drawing.
        if self.tape is not None:
            self.tape.look()
        if self.screen is self.live:
            self._draw_in_turn()

    @property
    def feed(self) -> Feed:
        """The device on the screen; an empty one where there is none yet."""
        return self.feeds.get(self.stream) or self._make_feed(self.stream)

    def _make_feed(self, stream: int) -> Feed:
        found = finder(self.source.header) if self.tape else Detector(settings=self._settings)
        return Feed(self.source.description, self._read_only, tell=partial(self.record.event, stream=stream), finder=found)

    def _feed_of(self, stream: int) -> Feed:
        if stream not in self.feeds:
            self.feeds[stream] = self._make_feed(stream)
            self.live.view = replace(self.live.view, device=self._place())
        return self.feeds[stream]

    def take(self, sample: Sample) -> None:
        """One more sample, of whichever device."""
        if sample.stream in self.going.dropped:
            return
        if not self.feeds:
            self.stream = sample.stream
        feed = self._feed_of(sample.stream)
        if self.tape is not None and self.tape.jumped(sample):
            self._after_jump(sample)
        feed.take(sample)
        self.tuner.take(sample)
        self.comparing.take(sample)
        self.sweeping.take(sample)
        if sample.stream == self.stream:
            self.diagnosis.take(sample)
        self.going.take(sample)
        self.say(self.record.take(sample))

    def _after_jump(self, there: Sample) -> None:
        """A replay has jumped: the devices, charts and events are those of the place it jumped to."""
        past = self.tape.past(self.live.view.span_s)
        for stream in self.feeds.keys() - past.keys() - {there.stream}:
            self.forget(stream)
        for stream in past.keys() - self.going.dropped:
            samples, told = past[stream]
            feed = self._feed_of(stream)
            feed.refill(samples)
            feed.retell(told, there.time_ns)
        if self.stream not in self.feeds:
            self.show_stream(there.stream)
        self.live.view = replace(self.live.view, device=self._place())

    def reach_back(self, span_s: float) -> None:
        """The chart of a replay gets another span: what is missing of it is read."""
        older = self.tape.earlier(span_s)
        for stream, feed in self.feeds.items():
            feed.reach_back(sample for sample in older if sample.stream == stream)

    def say(self, text: str | None) -> None:
        """One line for some seconds, in place of the key hints; None says nothing."""
        if text:
            self.live.say(text)

    def show_stream(self, stream: int) -> None:
        """Bring a device that is being watched to the screen."""
        self.stream = stream
        self.diagnosis.clear()
        self.live.show_device(*self._place())
        self.draw_now()

    def forget(self, stream: int) -> None:
        """A device is not watched any more."""
        self.feeds.pop(stream, None)
        self.tuner.forget(stream)
        self.comparing.forget(stream)

    def _place(self) -> tuple[int, int]:
        """Which of how many devices is shown."""
        streams = sorted(self.feeds)
        return (streams.index(self.stream) + 1 if self.stream in streams else 1), len(streams)

    def on_source_ended(self, message: SourceEnded) -> None:
        if message.error is not None:
            self.fail(message.error)

    def _draw_in_turn(self) -> None:
        """Draw the newest state now, or when it is time again: the last state before a silence is drawn too."""
        wait = self._draw_after - time.monotonic()
        if wait <= 0:
            self.draw_now()
        elif self._due is None:
            self._due = self.set_timer(wait, self._draw_due)

    def _draw_due(self) -> None:
        self._due = None
        if self.screen_stack and self.screen is self.live:
            self.draw_now()

    def draw_now(self) -> None:
        """Draw the newest state. What takes long to draw (hundreds of queues) is drawn less often."""
        started = time.monotonic()
        frame = self.feed.frame(self.interval_s)
        if frame is not None:
            badges = (*(self.tape.badges if self.tape else ()), *self.record.badges)
            self.live.show(frame, badges, self.tape is not None and self.tape.still)
        ended = time.monotonic()
        self._draw_after = started + (ended - started) * DRAWING_SHARE

    # -- leaving -------------------------------------------------------------------------------------------------

    def stop_watching(self) -> bool:
        """End the watcher thread, and the sweep that lives on its samples; True when it has ended."""
        self.sweeping.end()
        self.watcher.stop()
        return self.watcher.join(LONGEST_WAIT_S)

    def fail(self, error: BaseException) -> None:
        """Leave because of ``error``; ``run`` says it in one line and answers 1."""
        self.failure = self.failure or error
        self.exit(1, return_code=1)

    def _handle_exception(self, error: Exception) -> None:
        """Textual's hook for an exception in any handler or drawing function: remember it and leave. Its own way
        would print a page of traceback into a terminal in the middle of an incident."""
        self.failure = self.failure or error
        if self.is_headless:
            super()._handle_exception(error)
            return
        self._return_code = 1
        self._close_messages_no_wait()

    # -- keys ----------------------------------------------------------------------------------------------------

    async def action_quit(self) -> None:
        self.tuner.ask(lambda: self.exit(0))

    async def action_tune(self) -> None:
        """Open or close the tuning panel."""
        await self.tuner.toggle()

    def action_device(self, steps: int) -> None:
        """The next device of several."""
        streams = sorted(self.feeds)
        if len(streams) > 1:
            self.show_stream(streams[(streams.index(self.stream) + steps) % len(streams)])

    def action_device_number(self, number: int) -> None:
        """The device of a tab."""
        streams = sorted(self.feeds)
        if number <= len(streams) and len(streams) > 1:
            self.show_stream(streams[number - 1])

    def action_list(self) -> None:
        """All devices of all namespaces."""
        self.going.show_list()

    def leave_list(self) -> None:
        self.going.leave_list()

    def open_device(self, where, ifindex: int) -> None:
        """From the list: show this device."""
        self.going.open(where, ifindex, None)

    def on_opened(self, message: Opened) -> None:
        self.going.opened(message)

    async def action_peer(self) -> None:
        await self.going.peer()

    async def action_both(self) -> None:
        """The other end beside this one."""
        if self.live.query("#side") and not self.live.query("BothEnds"):
            await self.tuner.close()
        await self.going.both()

    async def action_neighbours(self) -> None:
        await self.going.neighbours()

    def action_diagnostics(self) -> None:
        self.push_screen(DiagnosticsScreen())

    def action_advice(self) -> None:
        """What one might do about what is going on."""
        frame = self.feed.frame(self.interval_s)
        if frame is not None:
            self.push_screen(AdviceScreen(frame))

    def action_mark(self) -> None:
        self.comparing.mark()

    def action_compare(self) -> None:
        self.comparing.show()

    def action_sweep(self) -> None:
        self.push_screen(SweepScreen(self.sweeping))

    def action_help(self) -> None:
        self.push_screen(HelpScreen())

    def action_events(self) -> None:
        self.push_screen(EventsScreen())

    def action_record(self) -> None:
        """Begin or end a recording."""
        if self.tape is not None:
            self.say("this is a recording already")
            return
        sample = self.feed.sample
        self.say(self.record.toggle(sample.device.name if sample else "device"))
        self.draw_now()

    def action_faster(self, steps: int) -> None:
        """Another refresh rate, from the next sample on. A replay plays faster or slower."""
        if self.tape is not None:
            self.tape.faster(steps)
            self.draw_now()
            return
        nearest = min(range(len(INTERVALS_S)), key=lambda n: abs(INTERVALS_S[n] - self.interval_s))
        self.interval_s = INTERVALS_S[max(0, min(len(INTERVALS_S) - 1, nearest - steps))]
        self.source.interval = self.interval_s
        self.draw_now()
