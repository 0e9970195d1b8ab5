"""Sweeps on real devices: everything is tried, and everything is put back, whatever happens."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time

import pytest

from bqltop.kernel import netns
from bqltop.sampler import Sampler
from bqltop.sweep import plan as plans
from bqltop.sweep.guard import parse_bound
from bqltop.sweep.runner import INTERVAL_S, Sweeper
from bqltop.tuning.journal import Journal
from bqltop.tuning.tuner import Tuner

pytestmark = pytest.mark.usefixtures("require_root")

KNOB = "txqueuelen"
BEFORE = 1000


@contextlib.contextmanager
def sweeper(end, tmp_path, words, runs=1, **more):
    plan = plans.Plan(plans.settings(plans.parse_grid(words)), runs, seconds=0.5, warm_up=0.2)
    where = netns.resolve(end.netns)
    with Tuner(end.device, where, Journal(str(tmp_path))) as tuner, Sampler(end.device, where, sojourn=True) as sampler:
        yield Sweeper(plan, tuner, sampler.every(INTERVAL_S), **more)


def queue_length(end) -> int:
    out = subprocess.run(["ip", "-n", end.netns, "-j", "link", "show", end.device], capture_output=True, check=True).stdout
    return json.loads(out)[0]["txqlen"]


def test_every_setting_is_tried_and_the_first_one_put_back(lab, tmp_path):
    built = lab(rules=1000)
    built.start_flood()
    seen = []
    with sweeper(built.sender, tmp_path, [f"{KNOB}=50,70"], runs=2, notify=lambda p: seen.append(p)) as sweep:
        lengths = []
        sweep._finished = lambda trial: lengths.append((dict(trial.setting).get(KNOB), queue_length(built.sender)))
        assert sweep.run() is None
    assert queue_length(built.sender) == BEFORE
    assert sorted(set(lengths), key=str) == [("50", 50), ("70", 70), (None, BEFORE)]
    assert len(sweep.trials) == 6
    assert [progress.done for progress in seen] == list(range(6))
    rates = [trial.measured.figures["packets_per_s"] for trial in sweep.trials]
    assert min(rates) > 0, rates
    assert all(trial.measured.figures["ring_p50_s"] is not None for trial in sweep.trials)
    assert not Journal(str(tmp_path)).left_behind()


def test_a_bound_stops_it_and_restores(lab, tmp_path):
    built = lab(rules=5000)
    built.start_flood()
    with sweeper(built.sender, tmp_path, [f"{KNOB}=50"], bounds=[parse_bound("drops>1%")]) as sweep:
        assert "drops>1%" in sweep.run()
    assert queue_length(built.sender) == BEFORE


def test_a_vanished_device_ends_it_in_peace(lab, tmp_path):
    built = lab(rules=0)
    with sweeper(built.sender, tmp_path, [f"{KNOB}=50,60"], runs=3) as sweep:
        sweep._finished = lambda _: subprocess.run(
            ["ip", "-n", built.sender.netns, "link", "del", built.sender.device], check=False, capture_output=True
        )
        assert sweep.run() == "the device is gone"
    assert len(sweep.trials) == 1


def test_a_refused_setting_is_passed_over(lab, tmp_path):
    built = lab(rules=0, pps=1000)
    built.start_flood()
    with sweeper(built.sender, tmp_path, ["tx-usecs=50"], runs=2) as sweep:
        assert sweep.run() is None
    refused = [trial for trial in sweep.trials if trial.setting]
    assert len(refused) == 2
    assert all(trial.measured is None and trial.trouble for trial in refused)


def started(end, tmp_path, *words):
    """`bqltop sweep` in a child, at work on its first change."""
    command = [sys.executable, "-m", "bqltop", "sweep", end.device, "--netns", end.netns, f"{KNOB}=50,60", "--runs", "20",
               "--seconds", "0.5", "--warm-up", "0.2", *words]  # fmt: skip
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL,
                             env=os.environ | {"BQLTOP_STATE_DIR": str(tmp_path)})  # fmt: skip
    deadline = time.monotonic() + 20
    while queue_length(end) == BEFORE:
        assert child.poll() is None, child.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return child


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_restore(lab, tmp_path, number):
    end = lab(rules=0).sender
    child = started(end, tmp_path, "--json")
    time.sleep(2)
    child.send_signal(number)
    out, _ = child.communicate(timeout=20)
    assert queue_length(end) == BEFORE
    if number == signal.SIGINT:  # a stopped sweep keeps what it has
        plain = json.loads(out)
        assert (child.returncode, plain["stopped"]) == (1, "interrupted")
        assert plain["trials"]


def test_after_kill_9_the_journal_restores(lab, tmp_path):
    end = lab(rules=0).sender
    child = started(end, tmp_path)
    child.kill()
    child.communicate()
    if queue_length(end) == BEFORE:
        pytest.skip("it was killed while the setting was the old one")
    command = [sys.executable, "-m", "bqltop", "restore", end.device, "--netns", end.netns]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"BQLTOP_STATE_DIR": str(tmp_path)})
    assert done.returncode == 0, done.stderr
    assert queue_length(end) == BEFORE


def test_a_stopped_sweep_is_resumed(lab, tmp_path):
    end = lab(rules=0).sender
    file = tmp_path / "kept"
    child = started(end, tmp_path, "--save", str(file))
    deadline = time.monotonic() + 30
    while not json.loads(file.read_text())["trials"] and time.monotonic() < deadline:
        time.sleep(0.1)
    child.send_signal(signal.SIGINT)
    child.communicate(timeout=20)
    plain = json.loads(file.read_text())
    done, plain["plan"]["runs"] = len(plain["trials"]), 2
    plain["trials"] = plain["trials"][:4]
    file.write_text(json.dumps(plain))
    command = [sys.executable, "-m", "bqltop", "sweep", "--resume", str(file), "--json", "--no-journal"]
    again = subprocess.run(command, capture_output=True, text=True)
    assert again.returncode == 0, again.stderr
    found = json.loads(again.stdout)
    assert done >= 1
    assert len(found["trials"]) == 6
    assert found["trials"][: len(plain["trials"])] == [
        {"setting": dict(t["setting"]), "run": t["run"], "figures": t["measured"] and t["measured"]["figures"],
         "trouble": t["trouble"]} for t in plain["trials"]
    ]  # fmt: skip
