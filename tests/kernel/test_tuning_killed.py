"""kill -9 at every step of a change, and of taking it back: the journal brings the device back to what it was."""

import os
import signal
import subprocess
import sys

import pytest

from bqltop.kernel import netns as namespaces
from bqltop.tuning.journal import Journal
from bqltop.tuning.recover import restore
from bqltop.tuning.tuner import Tuner

pytestmark = pytest.mark.usefixtures("require_root")

VICTIM = """
import os, signal, sys
from bqltop.kernel import netns
from bqltop.tuning.journal import Journal
from bqltop.tuning.tuner import Tuner

device, ns, folder, knob, value, last_words, undo = sys.argv[1:]

def step(name):
    if name == last_words:
        os.kill(os.getpid(), signal.SIGKILL)

def torn(fd, data, real=os.write):
    if b'"intent"' in data and last_words == "in the intent":
        real(fd, data[: len(data) // 2])
        os.kill(os.getpid(), signal.SIGKILL)
    if b'"outcome"' in data and last_words == "in the outcome":
        real(fd, data[: len(data) // 2])
        os.kill(os.getpid(), signal.SIGKILL)
    return real(fd, data)

os.write = torn
tuner = Tuner(device, netns.resolve(ns), Journal(folder), step=step)
(plan,) = tuner.plan({knob: value})
change = tuner.apply(plan)
assert change.changed, change.sentence
if undo == "undo":
    tuner.undo()
step("at the end")
"""
FORWARD = ["before intent", "in the intent", "after intent", "after write 0", "after write 1", "after read back",
           "in the outcome", "after outcome", "at the end"]  # fmt: skip
BACK = ["after undo intent", "after undo write"]
KNOBS = [("limit_min", "8"), ("txqueuelen", "77"), ("gro", "off")]


def run_victim(end, folder, knob, value, step, undo="no"):
    run = subprocess.run([sys.executable, "-c", VICTIM, end.device, end.netns, folder, knob, value, step, undo],
                         capture_output=True, text=True)  # fmt: skip
    assert run.returncode == -signal.SIGKILL, (run.returncode, run.stderr)


def value_of(end, folder, knob):
    with Tuner(end.device, namespaces.resolve(end.netns), Journal(folder)) as tuner:
        return tuner.setting(knob).values


@pytest.mark.parametrize("step", FORWARD)
@pytest.mark.parametrize(("knob", "value"), KNOBS)
def test_killed_while_changing(ifb, tmp_path, knob, value, step):
    if step == "after write 1" and knob != "limit_min":
        pytest.skip("only knobs of several queues are written more than once")
    end, folder = ifb(queues=2), str(tmp_path)
    before = value_of(end, folder, knob)
    run_victim(end, folder, knob, value, step)
    journal = Journal(folder)
    written = value_of(end, folder, knob) != before
    assert written == (step in FORWARD[3:])
    lefts = journal.left_behind()
    if step != "in the intent":  # of two queues' intents the first may be whole
        assert bool(lefts) == (step in FORWARD[2:])
    results = {one.result for one in restore(lefts, journal)}
    assert results <= {"restored", "unchanged"}
    assert value_of(end, folder, knob) == before
    assert journal.left_behind() == []


@pytest.mark.parametrize("step", BACK)
@pytest.mark.parametrize(("knob", "value"), KNOBS)
def test_killed_while_taking_back(ifb, tmp_path, knob, value, step):
    end, folder = ifb(queues=2), str(tmp_path)
    before = value_of(end, folder, knob)
    run_victim(end, folder, knob, value, step, "undo")
    journal = Journal(folder)
    assert journal.left_behind()
    assert {one.result for one in restore(journal.left_behind(), journal)} <= {"restored", "unchanged"}
    assert value_of(end, folder, knob) == before
    assert journal.left_behind() == []


def test_a_qdisc_of_a_killed_run_comes_back_with_its_handle(veth_pair, tmp_path):
    end, folder = veth_pair(qdisc="pfifo limit 100").sender, str(tmp_path)
    show = ["tc", "-n", end.netns, "qdisc", "show", "dev", end.device, "root"]
    before = subprocess.run(show, capture_output=True, text=True).stdout
    run_victim(end, folder, "qdisc", "bfifo limit 9000", "at the end")
    assert "bfifo" in subprocess.run(show, capture_output=True, text=True).stdout
    journal = Journal(folder)
    assert [one.result for one in restore(journal.left_behind(), journal)] == ["restored"]
    assert subprocess.run(show, capture_output=True, text=True).stdout == before


def test_a_change_at_the_peer_is_found_by_the_name_of_either_end(veth_pair, tmp_path, monkeypatch):
    from bqltop import cli

    pair, folder = veth_pair(napi_mode=False), str(tmp_path)
    monkeypatch.setenv("BQLTOP_STATE_DIR", folder)
    for name in (pair.sender.device, pair.receiver.device):
        run_victim(pair.sender, folder, "peer-gro", "on", "at the end")
        assert len(Journal(folder).left_behind()) == 1
        assert cli.main(["restore", name]) == 0
        assert Journal(folder).left_behind() == []
        assert value_of(pair.receiver, folder, "gro") == (0,)


def test_what_somebody_set_since_is_not_restored_unless_forced(ifb, tmp_path):
    end, folder = ifb(), str(tmp_path)
    run_victim(end, folder, "txqueuelen", "77", "at the end")
    subprocess.run(["ip", "-n", end.netns, "link", "set", end.device, "txqueuelen", "5"], check=True)
    journal = Journal(folder)
    (one,) = restore(journal.left_behind(), journal)
    assert one.result == "changed"
    assert "somebody has set it to 5 since" in one.text
    assert value_of(end, folder, "txqueuelen") == (5,)
    (one,) = restore(journal.left_behind(), journal, force=True)
    assert one.result == "restored"
    assert value_of(end, folder, "txqueuelen") == (32,)


def test_a_device_re_created_since_is_not_touched(ifb, tmp_path):
    end, folder = ifb(), str(tmp_path)
    run_victim(end, folder, "txqueuelen", "77", "at the end")
    subprocess.run(["ip", "-n", end.netns, "link", "del", end.device], check=True)
    subprocess.run(["ip", "-n", end.netns, "link", "add", end.device, "index", str(end.ifindex), "txqueuelen", "77",
                    "type", "ifb"], check=True)  # fmt: skip
    journal = Journal(folder)
    (one,) = restore(journal.left_behind(), journal)
    assert one.result == "gone"
    assert value_of(end, folder, "txqueuelen") == (77,)
    assert journal.left_behind() == []


def test_a_device_renamed_since_is_found(ifb, tmp_path):
    end, folder = ifb(), str(tmp_path)
    run_victim(end, folder, "txqueuelen", "77", "at the end")
    subprocess.run(["ip", "-n", end.netns, "link", "set", end.device, "name", "renamed"], check=True)
    journal = Journal(folder)
    (one,) = restore(journal.left_behind(), journal)
    assert one.result == "restored"
    with Tuner("renamed", namespaces.resolve(end.netns), journal) as tuner:
        assert tuner.setting("txqueuelen").value == 32


def test_a_namespace_that_is_gone_is_said(factory, tmp_path):
    from bqltop.lab import ifb

    folder = str(tmp_path)
    with ifb() as end:
        run_victim(end, folder, "txqueuelen", "77", "at the end")
    journal = Journal(folder)
    (one,) = restore(journal.left_behind(), journal)
    assert (one.result, one.ok) == ("gone", True)
    assert "namespace is gone" in one.text


LEAVER = """
import sys, time
from bqltop.kernel import netns
from bqltop.tuning.journal import Journal
from bqltop.tuning.tuner import Tuner, guarded

device, ns, folder, policy, how = sys.argv[1:]
with Tuner(device, netns.resolve(ns), Journal(folder)) as tuner, guarded(tuner, lambda: policy or None):
    for knob, trial in (("txqueuelen", None), ("limit_min", 60)):
        (plan,) = tuner.plan({knob: "77"})
        tuner.apply(plan, trial)
    print("changed", flush=True)
    if how == "crash":
        raise RuntimeError("a crash in the drawing code")
    if how == "exit":
        sys.exit(3)
    time.sleep(60)
"""


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGHUP, "crash", "exit"])
@pytest.mark.parametrize(("policy", "queue_length", "left"), [("revert", 32, 0), ("keep", 77, 0), ("", 77, 1)])
def test_an_orderly_end_follows_the_policy_and_always_ends_trials(ifb, tmp_path, policy, queue_length, left, how):
    end, folder = ifb(), str(tmp_path)
    words = [sys.executable, "-c", LEAVER, end.device, end.netns, folder, policy, str(how) if isinstance(how, str) else ""]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout.readline() == "changed\n"
        if not isinstance(how, str):
            os.kill(process.pid, how)
        status = process.wait(timeout=20)
    assert status == {"crash": 1, "exit": 3}.get(how, -how if not isinstance(how, str) else None)
    assert value_of(end, folder, "txqueuelen") == (queue_length,)
    assert value_of(end, folder, "limit_min") == (0,)
    assert len(Journal(folder).left_behind()) == left
