"""The sweep's dialog and the advice page on a real device."""

import asyncio
import json
import subprocess
import time

import pytest

from bqltop.advice import Advice
from bqltop.kernel import netns
from bqltop.sampler import Sampler
from bqltop.tui.app import BqltopApp
from bqltop.tuning.journal import NoJournal
from bqltop.tuning.tuner import Tuner

pytestmark = pytest.mark.usefixtures("require_root")


def queue_length(end) -> int:
    out = subprocess.run(["ip", "-n", end.netns, "-j", "link", "show", end.device], capture_output=True, check=True).stdout
    return json.loads(out)[0]["txqlen"]


async def wait_for(condition, seconds: float = 30.0):
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        await asyncio.sleep(0.05)
    return condition()


def app_on(end):
    where = netns.resolve(end.netns)
    sampler = Sampler(end.device, where)
    return BqltopApp(sampler, interval_s=0.1, tuner=lambda sample: Tuner(sample.device.name, where, NoJournal())), sampler


@pytest.mark.parametrize("stop", [False, True])
async def test_a_sweep_from_the_screen_puts_everything_back(lab, stop):
    built = lab(rules=1000)
    built.start_flood()
    app, sampler = app_on(built.sender)
    with sampler:
        async with app.run_test(size=(120, 40)) as pilot:
            assert await wait_for(lambda: app.tuner.tuning.tuner is not None)
            await pilot.press("S", *f"txqueuelen=50,70 runs={9 if stop else 1} seconds=0.5", "enter")
            assert app.sweeping.state.fault is None
            assert await wait_for(lambda: app.sweeping.state.trials)
            if stop:
                await pilot.press("x")
            assert await wait_for(lambda: not app.sweeping.state.running)
            state = app.sweeping.state
            assert bool(state.stopped) == stop
            assert len(state.trials) < 27 if stop else len(state.trials) == 3
            assert all(trial.measured.figures["ring_p50_s"] is not None for trial in state.trials)
            assert queue_length(built.sender) == 1000
            app.stop_watching()
        app.tuner.end()


async def test_advice_is_put_on_trial_with_one_key(lab):
    built = lab(rules=5000)
    built.start_flood()
    app, sampler = app_on(built.sender)
    with sampler:
        async with app.run_test(size=(120, 40)) as pilot:
            assert await wait_for(lambda: app.tuner.tuning.tuner is not None)
            assert await wait_for(lambda: (frame := app.feed.frame(0.1)) and frame.verdicts[0].kind == "driver-stops")
            await pilot.press("a")
            assert any("qdisc" in one.assignments for one in app.screen._advice)
            # the qdisc it advises need not be in this kernel
            app.screen._advice = (Advice("what", "why", "cost", (("txqueuelen", "500"),)),)
            await pilot.press("1")
            assert await wait_for(lambda: app.tuner.tuning.in_force)
            (change,) = app.tuner.tuning.in_force
            assert change.trial_until is not None
            assert "you: txqueuelen" in " ".join(event.text for event in app.feed.events)
            app.stop_watching()
        app.tuner.end()
