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
from bqltop.tui.feed import Feed
from bqltop.tui.frame import SORTS, Frame, View
from bqltop.tui.traces import SERIES
from bqltop.tui.widgets.chart import Chart
from bqltop.tui.widgets.head import Header, Keys, TooSmall, VerdictLines
from bqltop.tui.widgets.panel import Panel
from bqltop.tui.widgets.panels import Events, Napi, Qdiscs
from bqltop.tui.widgets.queues import QueueTable


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
        Binding("down,j", "select(1)", "next queue"),
        Binding("up,k", "select(-1)", "previous queue"),
        Binding("pagedown", "select(10)", "page down"),
        Binding("pageup", "select(-10)", "page up"),
        Binding("home", "select(-1000000)", "first queue"),
        Binding("end", "select(1000000)", "last queue"),
        Binding("escape", "unselect", "all queues"),
    ]

    def __init__(self, feed: Feed) -> None:
        super().__init__()
        self._feed = feed
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
        yield VerdictLines("verdict")
        yield QueueTable("queues")
        yield Chart("chart", self._feed.traces)
        yield Napi("napi")
        yield Qdiscs("qdiscs")
        yield Events("events")
        yield Keys("keys")

    def on_mount(self) -> None:
        """Samples may have come before the panels were there: attaching and starting up go on side by side."""
        self._composed = True
        self._redraw()

    # -- drawing -------------------------------------------------------------------------------------------------

    def show(self, frame: Frame) -> None:
        """Draw ``frame``, unless the drawing is paused."""
        if self.view.paused and self._frame is not None:
            return
        self._frame = frame
        self._redraw()

    def _redraw(self) -> None:
        frame = self._frame
        if frame is None or not self._composed:
            return
        table = self.query_one(QueueTable)
        qdiscs = len(frame.sample.qdiscs)
        wants = replace(self.wants, queues=table.wanted(frame, self.view), qdiscs=min(qdiscs, 12),
                        napis=min(len(frame.sample.napis), 16))
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

    # -- a panel at the side -------------------------------------------------------------------------------------

    async def open_side(self, panel: Widget) -> None:
        """Mount ``panel`` (its id is "side") beside the live view, which goes on running."""
        await self.mount(panel)
        self._want(replace(self.wants, side=True))

    async def close_side(self) -> None:
        """Take the side panel away, if there is one."""
        await self.query("#side").remove()
        self._want(replace(self.wants, side=False))

    # -- keys ----------------------------------------------------------------------------------------------------

    def action_pause(self) -> None:
        """Stop or resume drawing; samples are taken all the while."""
        self._change(paused=not self.view.paused)
        if not self.view.paused:
            self.app.draw_now()

    def action_sort(self) -> None:
        self._change(sort=SORTS[(SORTS.index(self.view.sort) + 1) % len(SORTS)])

    def action_fold(self) -> None:
        self._change(fold_idle=not self.view.fold_idle)

    def action_series(self) -> None:
        self._change(first_series=(self.view.first_series + 1) % len(SERIES))

    def action_select(self, by: int) -> None:
        self._change(selected=self.query_one(QueueTable).step(self.view, by))

    def action_unselect(self) -> None:
        self._change(selected=None)
