"""The tuning panel by Textual's pilot, over a kernel that keeps settings in a dict."""

from __future__ import annotations

import errno
import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "unit"))

from fake_access import FakeAccess
from fake_source import FakeSource
from fed import FedApp
from test_live import text_of

from bqltop.tui.screens.leave import LeaveScreen
from bqltop.tui.tuning import TRIAL_S
from bqltop.tui.widgets.tune_panel import TunePanel
from bqltop.tuning.journal import Journal
from bqltop.tuning.planner import READ_ONLY
from bqltop.tuning.tuner import Tuner


class Clock:
    now = 100.0

    def __call__(self):
        return self.now


class TunedApp(FedApp):
    """Fed by hand, with a tuner of a fake device; ``look`` is done when the test says so."""

    def __init__(self, folder, read_only=False, policy=None, **fake):
        self.clock = Clock()
        self.kernel = None
        self.book = Journal(str(folder))
        super().__init__(FakeSource("packets", **fake), tuner=self._tuner(read_only), policy=policy)
        self.tuner.tuning.clock = self.clock
        self.tuner.start = lambda: None

    def _tuner(self, read_only):
        def make(sample):
            tuner = Tuner("lo", journal=self.book, clock=self.clock, access=FakeAccess, read_only=read_only)
            self.kernel = tuner.own
            return tuner

        return make

    async def look(self):
        self.tuner.look()
        await self.settled()

    async def settled(self):
        await self.workers.wait_for_complete()

    async def on_unmount(self):
        await super().on_unmount()
        self.tuner.end()


@pytest.fixture
def opened(tmp_path):
    """``async with opened() as (app, pilot)``: the panel open on the first knob, limit_min."""
    from contextlib import asynccontextmanager

    @asynccontextmanager
    async def open_app(size=(140, 45), **options):
        app = TunedApp(tmp_path, **options)
        async with app.run_test(size=size) as pilot:
            await pilot.pause()
            app.play(20)
            await app.look()
            await press(app, pilot, "t")
            yield app, pilot

    return open_app


def panel_text(app):
    """The panel's own words, wrapped lines joined."""
    panel = app.live.query_one(TunePanel)
    return " ".join("".join(panel.render_line(y).text + " " for y in range(panel.size.height)).split())


async def press(app, pilot, *keys):
    for key in keys:
        await pilot.press(key)
        await app.settled()
    await pilot.pause()


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 50)], ids=lambda s: f"{s[0]}x{s[1]}")
def test_picture(snap_compare, tmp_path, size):
    """A change whose effect is being measured, and another about to be made."""
    app = TunedApp(tmp_path)

    async def tune(pilot):
        await pilot.pause()
        app.play(200)
        await app.look()
        await press(app, pilot, "t", "8", "enter")
        app.play(150)
        await app.look()
        await press(app, pilot, *["down"] * 4, "plus", "enter")

    assert snap_compare(app, terminal_size=size, run_before=tune)


async def test_t_opens_the_panel_beside_the_live_view_and_closes_it(opened):
    async with opened() as (app, pilot):
        text = text_of(app)
        assert "tune veth0" in text
        assert "▸limit_min" in text
        assert "TX queues" in text  # the live view goes on
        await press(app, pilot, "t")
        assert "tune veth0" not in text_of(app)
        await press(app, pilot, "t", "escape")
        assert "tune veth0" not in text_of(app)


@pytest.mark.parametrize("size", [(140, 45), (120, 40), (80, 24), (60, 16), (40, 10), (200, 50), (20, 5), (1, 1)])
async def test_it_fits_any_window(opened, size):
    async with opened(size=size) as (app, pilot):
        await press(app, pilot, "plus", "plus", "enter", "down", "plus", "u", "left", "right")
        for width, height in ((200, 60), (45, 11), (10, 3), size):
            await pilot.resize_terminal(width, height)
            await pilot.pause()


async def test_stepping_shows_the_command_and_enter_applies(opened):
    async with opened() as (app, pilot):
        await press(app, pilot, "plus", "plus", "plus", "plus")
        text = panel_text(app)
        assert "0 → 8" in text
        assert "byte_queue_limits/limit_min" in text.replace(" ", "")
        assert app.kernel.values["limit_min", 0] == 0
        await press(app, pilot, "enter")
        assert [app.kernel.values["limit_min", queue] for queue in range(4)] == [8] * 4
        assert "pending until the next completion" in panel_text(app)
        assert any(event.text.startswith("you: limit_min of 4 queues: 0 -> 8") for event in app.feed.events)
        assert len(app.feed.marks) == 1


async def test_typing_a_value(opened):
    async with opened() as (app, pilot):
        await press(app, pilot, "enter")
        assert app.tuner.tuning.state.typing
        await press(app, pilot, "backspace", "m", "a", "x")
        assert "0 → max_" in panel_text(app)
        await press(app, pilot, "u")
        assert "takes a whole number or max" in panel_text(app)
        await press(app, pilot, "enter")
        assert app.kernel.values["limit_min", 0] == 0
        await press(app, pilot, "escape", "1", "6", "enter")
        assert app.kernel.values["limit_min", 0] == 16


async def test_keys_in_a_burst_stay_in_order(opened):
    async with opened() as (app, pilot):
        await pilot.press("2", "0", "0", "enter", "down", "5", "0", "enter", "q")
        await app.settled()
        assert (app.kernel.values["limit_min", 0], app.kernel.values["limit_max", 0]) == (200, 50)
        assert isinstance(app.screen, LeaveScreen)
        await press(app, pilot, "r")


async def test_one_queue_of_several(opened):
    async with opened() as (app, pilot):
        app.fake.count = 4
        await press(app, pilot, "right")
        assert "queue 0" in panel_text(app)
        await press(app, pilot, "1", "6", "enter")
        assert [app.kernel.values["limit_min", queue] for queue in range(4)] == [16, 0, 0, 0]
        await press(app, pilot, "left")
        assert "0..16" in panel_text(app)


async def test_what_can_cut_traffic_asks_first_and_is_on_trial(opened):
    async with opened() as (app, pilot):
        await press(app, pilot, *["down"] * 4)
        assert app.tuner.tuning.state.setting.knob.id == "ring-tx"
        await press(app, pilot, "plus", "enter")
        assert "can cut traffic" in panel_text(app)
        assert app.kernel.values["ring-tx", None] == 256
        await press(app, pilot, "escape", "plus", "enter", "enter")
        assert app.kernel.values["ring-tx", None] == 512
        assert f"trial {TRIAL_S:.0f} s" in panel_text(app)
        app.clock.now += TRIAL_S - 5
        await app.look()
        assert "trial 5 s" in panel_text(app)
        app.clock.now += 6
        await app.look()
        assert app.kernel.values["ring-tx", None] == 256
        assert "512 back to 256" in panel_text(app)


async def test_a_trial_can_be_kept(opened):
    async with opened() as (app, pilot):
        await press(app, pilot, "8", "tab")
        assert "trial" in panel_text(app)
        await press(app, pilot, "k")
        app.clock.now += 100
        await app.look()
        assert app.kernel.values["limit_min", 0] == 8


async def test_u_and_U_take_back(opened):
    async with opened() as (app, pilot):
        await press(app, pilot, "8", "enter", "9", "enter", "down", "5", "enter")
        assert app.kernel.values["limit_max", 0] == 5
        await press(app, pilot, "u")
        assert app.kernel.values["limit_max", 0] == 1000
        await press(app, pilot, "U")
        assert app.kernel.values["limit_min", 0] == 0
        assert app.tuner.tuning.in_force == ()


async def test_a_refused_write_shows_errno_the_kernels_text_and_the_old_value(opened):
    async with opened() as (app, pilot):
        app.kernel.refuse["limit_min", 0] = OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        await press(app, pilot, "8", "enter")
        assert "limit_min of 4 queues stays 0: Invalid argument (errno 22)" in panel_text(app)
        assert app.tuner.tuning.in_force == ()


async def test_the_command_can_be_copied(opened):
    async with opened() as (app, pilot):
        await press(app, pilot, "plus", "y")
        assert "echo 1" in app.clipboard


async def test_read_only_is_readable_and_says_why(opened):
    async with opened(read_only=True) as (app, pilot):
        assert READ_ONLY in panel_text(app)
        await press(app, pilot, "8", "enter")
        assert app.kernel.writes == []
        assert READ_ONLY in panel_text(app)


async def test_somebody_elses_change_is_an_event_and_shows_in_the_panel(opened):
    async with opened() as (app, _pilot):
        app.kernel.values["tx-usecs", None] = 77
        await app.look()
        assert app.feed.events[-1].text == "somebody set tx-usecs: 50 -> 77"
        assert "tx-usecs 77" in panel_text(app)


async def test_before_and_after_stand_side_by_side(opened):
    async with opened(size=(150, 50)) as (app, pilot):
        app.play(120)
        await press(app, pilot, "8", "enter")
        assert "measuring" in panel_text(app)
        app.play(130)
        await app.look()
        text = panel_text(app)
        assert "before and after" in text
        for figure in ("packets/s", "stopped", "requeues/s", "NAPI polls/s", "work per poll", "inflight p99", "dark buffer"):
            assert figure in text
        assert "noise" in text


async def test_leaving_with_changes_asks_keep_or_revert(opened):
    async with opened() as (app, pilot):
        await press(app, pilot, "8", "enter", "escape", "q")
        assert isinstance(app.screen, LeaveScreen)
        await press(app, pilot, "escape")
        assert app.screen is app.live
        await press(app, pilot, "q", "r")
    assert app.kernel.values["limit_min", 0] == 0


async def test_the_question_is_asked_once_and_of_several_devices_names_which(opened):
    async with opened() as (app, pilot):
        await press(app, pilot, "8", "enter", "escape")
        app.take(replace(app.feed.sample, stream=1))
        await press(app, pilot, "q", "ctrl+c", "ctrl+c")
        assert isinstance(app.screen, LeaveScreen)
        (sentence,) = app.screen._sentences
        assert sentence.startswith("veth0")
        assert ": limit_min" in sentence
        await press(app, pilot, "escape")
        assert app.screen is app.live
        await press(app, pilot, "q", "k")
    assert app.return_value == 0


@pytest.mark.parametrize(("policy", "value", "state"), [("keep", 8, "kept"), ("revert", 0, "undone")])
async def test_with_a_policy_nothing_is_asked(opened, policy, value, state):
    async with opened(policy=policy) as (app, pilot):
        await press(app, pilot, "8", "enter", "escape", "q")
    assert app.return_value == 0
    assert app.kernel.values["limit_min", 0] == value
    assert {entry.state for entry in app.book.entries() if not entry.undoes} == {state}


async def test_a_crash_or_a_signal_without_a_policy_leaves_it_to_the_next_start(opened):
    async with opened() as (app, pilot):
        await press(app, pilot, "8", "enter")
        await press(app, pilot, "down", "5", "tab")
        app.exit(1)  # what SIGTERM does
    assert app.kernel.values["limit_min", 0] == 8
    assert app.kernel.values["limit_max", 0] == 1000  # it was on trial
    states = [(entry.knob, entry.state) for entry in app.book.entries() if not entry.undoes and entry.queue == 0]
    assert states == [("limit_min", "done"), ("limit_max", "undone")]


async def test_a_recording_cannot_be_tuned(fed_app):
    app = fed_app()
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        app.play(5)
        await pilot.press("t", "plus", "enter", "u", "8", "tab", "y", "k", "R", "right")
        await app.workers.wait_for_complete()
        assert "nothing can be set here" in panel_text(app)


async def test_hostile_text_is_shown_as_it_is(opened):
    async with opened() as (app, pilot):
        app.kernel.refuse["limit_min", 0] = OSError(errno.EINVAL, "[/red] [b]x")
        await press(app, pilot, "8", "enter")
        assert "[/red] [b]x" in panel_text(app)
