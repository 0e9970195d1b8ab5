"""Going from device to device: the list, tabs, the peer, neighbours, and back."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual.message import Message

from bqltop.model import Namespace, Sample
from bqltop.tui.screens.devices import DevicesScreen
from bqltop.tui.screens.neighbours import NeighboursScreen
from bqltop.tui.tabs import Tabs
from bqltop.tui.widgets.both_ends import BothEnds

if TYPE_CHECKING:
    from bqltop.discovery.neighbours import Neighbour
    from bqltop.tui.app import BqltopApp
    from bqltop.tui.frame import Frame

MOST = 9
"""Devices at once: as many as there are digits to choose one with."""
OTHER_END = ("peer", "lower")
WIDE = 150
"""Columns from which both ends have room side by side."""
SIDE = "side"


@dataclass
class Opened(Message):
    """A device that was asked for is being watched (``stream``), or cannot be (``why``)."""

    stream: int | None
    why: str = ""
    asked: tuple[int, int] | None = None


def _other_end(found: Sequence[Neighbour]) -> Neighbour | None:
    """The peer of a veth, else the lower device of an upper one."""
    return next((each for relation in OTHER_END for each in found if each.relation == relation), None)


class Going:
    """``devices`` is what bqltop.roster.Roster is; None where there is only what the source has.

    A device that was opened from the list, as a peer or as a neighbour remembers where from: going back closes it.
    """

    def __init__(self, app: BqltopApp, devices=None) -> None:
        self.devices, self.tabs = devices, Tabs()
        self._app = app
        self._list = DevicesScreen(devices) if devices is not None else None
        self._came_from: dict[int, int | None] = {}
        self._awaited: int | None = None
        self._asked_from: int | None = None
        self._opening: set[tuple[int, int]] = set()
        self._quietly = False
        """What was asked for is to be watched, but not shown."""
        self.dropped: set[int] = set()

    # -- samples -------------------------------------------------------------------------------------------------

    def take(self, sample: Sample) -> None:
        """Every sample; shows a device that was asked for as soon as there is something to see of it."""
        self.tabs.take(sample)
        if sample.stream == self._awaited:
            self._awaited = None
            if self._app.screen is self._list:
                self._list.say("")
                self._app.pop_screen()
            self._app.show_stream(sample.stream)

    # -- opening -------------------------------------------------------------------------------------------------

    def open(self, where: Namespace, ifindex: int, came_from: int | None) -> None:
        """Show a device: the tab it has, or a new one. ``came_from``: the stream on the screen, None for the list."""
        stream = self.devices.stream_of(where, ifindex)
        if stream is not None and stream in self._app.feeds:
            if self._app.screen is self._list:
                self._list.say("")
                self._app.pop_screen()
            self._app.show_stream(stream)
        elif stream is not None:
            self._awaited = stream  # it is watched, and shown with its first sample
        elif len(self._app.feeds) >= MOST:
            self.say(f"{MOST} devices are watched already: Esc closes one that was opened from here")
        else:
            self._watch(where, ifindex, came_from, quietly=False)

    def _watch(self, where: Namespace, ifindex: int, came_from: int | None, quietly: bool) -> None:
        """Asked for twice while it is being attached to, it is opened once."""
        self._asked_from, self._quietly = came_from, quietly
        asked = where.inode, ifindex
        if asked not in self._opening:
            self._opening.add(asked)
            self.devices.watch(where, ifindex, lambda stream, why: self._app.post_message(Opened(stream, why, asked)))

    def opened(self, message: Opened) -> None:
        self._opening.discard(message.asked)
        if message.stream is None:
            self.say(message.why)
            return
        self._came_from[message.stream] = self._asked_from
        if self._quietly:
            return
        self._awaited = message.stream
        # Its first sample may have come before this message.
        if message.stream in self._app.feeds:
            self.take(self._app.feeds[message.stream].sample)

    def say(self, text: str) -> None:
        """One line, where the user is looking."""
        if self._app.screen is self._list:
            self._list.say(text)
        else:
            self._app.live.say(text)

    # -- the list ------------------------------------------------------------------------------------------------

    def show_list(self) -> None:
        if self._list is None:
            self.say("there is no list of devices here: this is not a live run")
        elif self._app.screen is self._app.live:
            if not self._app.is_screen_installed(self._list):
                # Else Textual takes a screen apart when it is left.
                self._app.install_screen(self._list, "devices")
            self._app.push_screen("devices")

    def leave_list(self) -> None:
        """Back to the device that was watched, if there is one."""
        if self._app.feeds:
            self._app.pop_screen()
        else:
            self._list.say("Enter watches the selected device, q quits")

    # -- peer and neighbours -------------------------------------------------------------------------------------

    async def _neighbours(self) -> tuple[int, list[Neighbour]]:
        stream = self._app.stream
        return stream, await asyncio.to_thread(self.devices.neighbours, stream)

    async def peer(self) -> None:
        """To the other end of a veth or the lower device of an upper one; from there, back."""
        name = self._name()
        if self.devices is None:
            self.say("the other end cannot be shown: this is not a live run")
            return
        stream, found = await self._neighbours()
        other = _other_end(found)
        if other is None:
            self.say(f"{name} has no other end")
        else:
            self._go(other, stream)

    async def both(self) -> None:
        """The other end beside this one, or away again."""
        live = self._app.live
        if live.query(BothEnds):
            await live.close_side()
            return
        if self.devices is None or self._app.size.width < WIDE:
            where = "this is not a live run" if self.devices is None else f"it needs {WIDE} columns; p shows the other end"
            self.say(f"no both ends side by side: {where}")
            return
        stream, found = await self._neighbours()
        other = _other_end(found)
        if other is None or other.namespace is None:
            self.say(f"{self._name()} has no other end that can be watched from here")
            return
        if self.devices.stream_of(other.namespace, other.ifindex) is None:
            self._watch(other.namespace, other.ifindex, stream, quietly=True)
        await live.open_side(BothEnds(SIDE, lambda: self._frame_beside(stream, other)))
        self._app.draw_now()

    def _frame_beside(self, stream: int, other: Neighbour) -> Frame | None:
        """The end that is not on the screen."""
        there = self.devices.stream_of(other.namespace, other.ifindex)
        feed = self._app.feeds.get(stream if self._app.stream == there else there)
        return feed.frame(self._app.interval_s) if feed else None

    async def neighbours(self) -> None:
        """The menu of what the device is connected to."""
        name = self._name()
        if self.devices is None:
            self.say("neighbours cannot be shown: this is not a live run")
            return
        stream, found = await self._neighbours()
        if not found:
            self.say(f"{name} is connected to no other device")
            return

        def chosen(neighbour: Neighbour | None) -> None:
            if neighbour is not None:
                self._go(neighbour, stream)

        self._app.push_screen(NeighboursScreen(name, found), chosen)

    def _go(self, other: Neighbour, stream: int) -> None:
        if other.namespace is None:
            self.say(f"the {other.relation} (index {other.ifindex}) is in a namespace that cannot be entered from here")
        else:
            self.say(f"attaching to {other.name or other.ifindex} ...")
            self.open(other.namespace, other.ifindex, stream)

    def _name(self) -> str:
        sample = self._app.feed.sample
        return sample.device.name if sample else "the device"

    # -- back ----------------------------------------------------------------------------------------------------

    def back(self) -> None:
        """Close what was opened from here and show where it was opened from."""
        stream = self._app.stream
        if self.devices is None or stream not in self._came_from:
            return
        if self._app.tuner.holds(stream):
            self.say("changes are in force here: take them back (t, then U), or leave this device open (Tab, l)")
            return
        came_from = self._came_from.pop(stream)
        self.dropped.add(stream)
        self.devices.drop(stream)
        self.tabs.drop(stream)
        self._app.forget(stream)
        left = list(self._app.feeds)
        if came_from in left:
            self._app.show_stream(came_from)
        else:
            if left:
                self._app.show_stream(left[-1])
            self.show_list()
