"""The live screen: the panels, where they go, and the keys that change what they show."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.geometry import NULL_OFFSET, NULL_SPACING, Size
from textual.layout import ArrangeResult, Layout, WidgetPlacement
from textual.screen import Screen
from textual.widget import Widget

from bqltop.tui.arrange import Wants, arrange
from bqltop.tui.draw import panels, tun
from bqltop.tui.frame import SORTS, Frame, View
from bqltop.tui.series import SERIES, ZOOMS_S
from bqltop.tui.widgets.chart import Chart
from bqltop.tui.widgets.head import Header, Keys, TooSmall, VerdictLines
from bqltop.tui.widgets.panel import Panel
from bqltop.tui.widgets.panels import Events, Napi, Qdiscs
from bqltop.tui.widgets.queues import QueueTable
from bqltop.tui.widgets.tab_line import TabLine
from bqltop.tui.widgets.tun import TunPanel


class _LiveLayout(Layout):
    """Hands Textual the regions that ``arrange`` has worked out; a panel without one is not placed."""

    name = "live"

    def arrange(self, parent: Widget, children: list[Widget], size: Size, greedy: bool = True) -> ArrangeResult:
        regions = arrange(size.width, size.height, parent.wants)
        return [
            WidgetPlacement(regions[child.id], NULL_OFFSET, NULL_SPACING, child)
            for child in children
            if child.id in regions
        ]


class LiveScreen(Screen):
    """``side`` is the place for one more panel at the right (tuning): ``open_side`` mounts one, ``close_side``
    takes it away."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "pause", "pause"),
        Binding("s", "sort", "sort"),
        Binding("z", "fold", "idle queues"),
        Binding("c", "series", "chart"),
        Binding("x", "zoom(1)", "longer span"),
        Binding("X", "zoom(-1)", "shorter span"),
        Binding("left", "move(-1)", "a sample back"),
        Binding("right", "move(1)", "a sample on"),
        Binding("left_square_bracket", "move_by(-60)", "a minute back"),
        Binding("right_square_bracket", "move_by(60)", "a minute on"),
        Binding("comma", "move_by(-1)", "a second back"),
        Binding("full_stop", "move_by(1)", "a second on"),
        Binding("greater_than_sign", "event(1)", "next event"),
        Binding("less_than_sign", "event(-1)", "event before"),
        Binding("down,j", "select(1)", "next queue"),
        Binding("up,k", "select(-1)", "previous queue"),
        Binding("pagedown", "select(10)", "page down"),
        Binding("pageup", "select(-10)", "page up"),
        Binding("home", "select(-1000000)", "first queue"),
        Binding("end", "select(1000000)", "last queue"),
        Binding("escape", "unselect", "all queues"),
        Binding("tab", "app.device(1)", "next device"),
        Binding("shift+tab", "app.device(-1)", "previous device"),
        *(Binding(str(number), f"app.device_number({number})", f"device {number}") for number in range(1, 10)),
    ]

    def __init__(self) -> None:
        super().__init__()
        self._layout = _LiveLayout()
        self.view = View()
        self.wants = Wants()
        self._frame: Frame | None = None
        self._composed = False

    @property
    def layout(self) -> Layout:
        return self._layout

    def compose(self) -> ComposeResult:
        yield TooSmall("small")
        yield Header("header")
        yield TabLine("tabs")
        yield VerdictLines("verdict", f"attaching to {self.app.source.description} ...")
        yield QueueTable("queues")
        yield Chart("chart")
        yield Napi("napi")
        yield Qdiscs("qdiscs")
        yield TunPanel("tun")
        yield Events("events")
        yield Keys("keys")

    def on_mount(self) -> None:
        """Samples may have come before the panels were there: attaching and starting up go on side by side."""
        self._composed = True
        self._redraw()

    # -- drawing -------------------------------------------------------------------------------------------------

    def on_screen_resume(self) -> None:
        """Under another screen nothing was drawn, and of a replay that stands nothing more comes."""
        self.app.draw_now()

    def show(self, frame: Frame, badges: tuple[str, ...] = (), still: bool = False) -> None:
        """Draw ``frame``, unless the drawing is paused: then the header alone. ``badges`` are for the header."""
        before, self.view = self.view, replace(self.view, badges=badges, still=still)
        if self.view.paused and self._frame is not None:
            if badges != before.badges and self._composed:
                self.query_one(Header).show(self._frame, self.view)
            return
        self._frame = frame
        self._redraw()

    def _redraw(self) -> None:
        frame = self._frame
        if frame is None or not self._composed:
            return
        table, tabs = self.query_one(QueueTable), self.query_one(TabLine)
        tabs.entries = self.app.going.tabs.entries(sorted(self.app.feeds), self.app.stream)
        wants = replace(self.wants, queues=table.wanted(frame, self.view), qdiscs=min(panels.qdisc_lines(frame), 12),
                        napis=min(len(frame.sample.napis), 16), tabs=len(tabs.entries) > 1,
                        tun=tun.lines_wanted(frame.sample))
        if wants != self.wants:
            self._want(wants)
        for panel in self.query(Panel):
            panel.show(frame, self.view)

    def _want(self, wants: Wants) -> None:
        """Work out the regions anew. Textual keeps an arrangement until sizes or children change: it cannot know
        that the wishes have."""
        self.wants = wants
        self._clear_arrangement_cache()
        self.refresh(layout=True)

    def _change(self, **changes) -> None:
        self.view = replace(self.view, **changes)
        self._redraw()

    def say(self, text: str) -> None:
        """One line in place of the key hints, for some seconds."""
        if self._composed:
            self.query_one(Keys).say(text)

    # -- a panel at the side -------------------------------------------------------------------------------------

    async def open_side(self, panel: Widget) -> None:
        """Mount ``panel`` (its id is "side") beside the live view, which goes on running."""
        await self.query("#side").remove()
        await self.mount(panel)
        self._want(replace(self.wants, side=True))

    async def close_side(self) -> None:
        """Take the side panel away, if there is one."""
        await self.query("#side").remove()
        self._want(replace(self.wants, side=False))

    # -- keys ----------------------------------------------------------------------------------------------------

    def action_pause(self) -> None:
        """Stop or resume drawing; samples are taken all the while. A replay itself stops."""
        if self.app.tape is not None:
            self.app.tape.toggle()
            self.app.draw_now()
            return
        self._change(paused=not self.view.paused, cursor_ns=None)
        if not self.view.paused:
            self.app.draw_now()

    def action_sort(self) -> None:
        self._change(sort=SORTS[(SORTS.index(self.view.sort) + 1) % len(SORTS)])

    def action_fold(self) -> None:
        self._change(fold_idle=not self.view.fold_idle)

    def action_series(self) -> None:
        self._change(first_series=(self.view.first_series + 1) % len(SERIES))

    def action_zoom(self, by: int) -> None:
        """A longer or a shorter span of time in the chart."""
        zoom = max(0, min(len(ZOOMS_S) - 1, self.view.zoom + by))
        if self.app.tape is not None:
            self.app.reach_back(ZOOMS_S[zoom])
        self._change(zoom=zoom)

    def action_move(self, samples: int) -> None:
        """Look at the sample so many before or after the one shown; drawing is paused from then on."""
        if self.app.tape is not None:
            self.app.tape.step(samples)
        elif self._frame is not None:
            here = self._frame.sample.monotonic_ns
            self._look_from(here, self._frame.history.neighbour(here, samples), samples)

    def action_move_by(self, seconds: int) -> None:
        """Look at the sample so many seconds before or after the one shown, another one in any case: in the thinned past
        they are further apart than that."""
        if self.app.tape is not None:
            self.app.tape.by(seconds)
        elif self._frame is not None:
            here, history = self._frame.sample.monotonic_ns, self._frame.history
            there = history.neighbour(here + seconds * 10**9, 0)
            if there is not None and (there - here) * seconds <= 0:  # none so near, or the device is away
                there = history.neighbour(here, 1 if seconds > 0 else -1)
            self._look_from(here, there, seconds)

    def _look_from(self, here: int, there: int | None, direction: int) -> None:
        """Look at another moment, unless it lies the other way: while the device is away, the newest is one of the past."""
        if there is not None and (there - here) * direction < 0:
            self.say("nothing was seen after this moment")
        else:
            self._look_at(there)

    def action_event(self, direction: int) -> None:
        """Look at the next moment at which something happened, or the one before."""
        if self.app.tape is not None:
            self.app.tape.event(direction)
            return
        frame = self._frame
        if frame is None:
            return
        here, clock = frame.sample.monotonic_ns, frame.sample.time_ns - frame.sample.monotonic_ns
        seen = frame.history.first_after(event.time_ns - clock for event in self.app.feed.log)
        there = [moment for moment in seen if (moment - here) * direction > 0]
        if there:
            self._look_at(min(there) if direction > 0 else max(there))
        else:
            self.say(f"no event {'after' if direction > 0 else 'before'} this moment")

    def _look_at(self, moment_ns: int | None) -> None:
        frame = None if moment_ns is None else self.app.feed.frame_at(moment_ns, self.app.interval_s)
        if frame is not None:
            self._frame = frame
            self._change(paused=True, cursor_ns=frame.sample.monotonic_ns)

    def show_device(self, number: int, of: int) -> None:
        """Another device, or another number of them: what was chosen for the last one is dropped."""
        self._frame = None
        self.view = replace(self.view, selected=None, cursor_ns=None, paused=False, device=(number, of))

    def action_select(self, by: int) -> None:
        self._change(selected=self.query_one(QueueTable).step(self.view, by))

    def action_unselect(self) -> None:
        """All queues together; where that is so, back to where this device was opened from."""
        if self.view.selected is None:
            self.app.going.back()
        else:
            self._change(selected=None)
