"""The device list as a screen: looks about once a second, in a thread, and opens what is chosen."""

from __future__ import annotations

import asyncio
import time
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen

from bqltop.tui.devices import DeviceTable
from bqltop.tui.widgets.device_list import DeviceList

EVERY_S = 1.0
SHARE = 20
"""Looking takes at most one part in this many of a CPU, however many devices there are."""


class DevicesScreen(Screen):
    """``devices`` is what bqltop.roster.Roster is."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down,j", "move(1)", "down"),
        Binding("up,k", "move(-1)", "up"),
        Binding("pagedown,space", "page(1)", "page down"),
        Binding("pageup", "page(-1)", "page up"),
        Binding("home,g", "move(-1000000)", "first"),
        Binding("end,G", "move(1000000)", "last"),
        Binding("enter", "open", "watch"),
        Binding("slash", "filter", "filter"),
        Binding("s", "sort", "sort"),
        Binding("r", "reverse", "reverse"),
        Binding("escape", "back", "back"),
        Binding("l", "leave", "back"),
        Binding("d,p,P,n,t,a,b,B,e,S,plus,minus,equals_sign,tab,shift+tab", "nothing", "", show=False),
    ]

    def __init__(self, devices) -> None:
        super().__init__()
        self.devices = devices
        self.table = DeviceTable()
        self._looking: asyncio.Task | None = None

    def compose(self) -> ComposeResult:
        yield DeviceList(self.table)

    @property
    def list(self) -> DeviceList:
        return self.query_one(DeviceList)

    def on_mount(self) -> None:
        self.list.focus()

    def on_screen_resume(self) -> None:
        """Look as long as the list is what is seen."""
        if self._looking is None:
            self._looking = asyncio.create_task(self._look())

    def on_screen_suspend(self) -> None:
        self._end_looking()

    def on_unmount(self) -> None:
        self._end_looking()

    def _end_looking(self) -> None:
        if self._looking is not None:
            self._looking.cancel()
            self._looking = None

    async def _look(self) -> None:
        while True:
            spent_s = 0.0
            try:
                roll, spent_s = await asyncio.to_thread(self._list_once)
            except OSError as error:
                self.say(f"the devices cannot be listed: {error.strerror or error}")
            else:
                # The first look has no rates: the second follows soon.
                first = not self.table.known
                self.table.take(roll)
                self.list.redraw()
                if first:
                    await asyncio.sleep(0.2)
                    continue
            await asyncio.sleep(max(EVERY_S, spent_s * SHARE))

    def _list_once(self):
        """In a thread: all devices, and the CPU seconds it took to look."""
        before = time.thread_time()
        return self.devices.list(), time.thread_time() - before

    def say(self, text: str) -> None:
        """One line at the bottom."""
        self.table.message = text
        self.list.redraw()

    # -- keys ----------------------------------------------------------------------------------------------------

    def on_key(self, event: events.Key) -> None:
        """While a filter is typed every character belongs to it."""
        table = self.table
        if not table.typing:
            return
        if event.key == "backspace":
            table.set_filter(table.filter[:-1])
        elif event.key == "ctrl+u":
            table.set_filter("")
        elif event.is_printable and event.character:
            table.set_filter(table.filter + event.character)
        else:
            return
        event.prevent_default()
        event.stop()
        self.list.redraw()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Letters are no commands while a filter is typed."""
        return not (self.table.typing and action in ("sort", "reverse", "leave", "filter"))

    def action_nothing(self) -> None:
        """Keys of the live screen have no meaning here."""

    def action_move(self, by: int) -> None:
        self.table.message = ""
        self.table.move(by)
        self.list.redraw()

    def action_page(self, pages: int) -> None:
        self.action_move(pages * max(1, self.list.size.height - 5))

    def action_sort(self) -> None:
        self.table.next_sort()
        self.list.redraw()

    def action_reverse(self) -> None:
        self.table.turn_round()
        self.list.redraw()

    def action_filter(self) -> None:
        self.table.typing, self.table.message = True, ""
        self.list.redraw()

    def action_open(self) -> None:
        """Watch the selected device; while a filter is typed, only end typing."""
        if self.table.typing:
            self.table.typing = False
            self.list.redraw()
            return
        row = self.table.current
        if row is not None:
            self.say(f"attaching to {row.device.name} ...")
            self.app.open_device(row.device.namespace, row.device.ifindex)

    def action_back(self) -> None:
        if self.table.typing or self.table.filter:
            self.table.typing = False
            self.table.set_filter("")
            self.list.redraw()
        else:
            self.action_leave()

    def action_leave(self) -> None:
        self.app.leave_list()
