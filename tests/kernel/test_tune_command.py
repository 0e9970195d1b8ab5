"""bqltop tune, restore and journal as a person runs them: text, JSON, exit statuses, one line for every error."""

import json
import os
import signal
import subprocess
import sys

import pytest

pytestmark = pytest.mark.usefixtures("require_root")


@pytest.fixture
def bqltop(tmp_path):
    """``bqltop("tune", ...)``: (exit status, standard output, standard error)."""
    environment = {**os.environ, "BQLTOP_STATE_DIR": str(tmp_path / "state")}

    def run(*words, timeout=30):
        done = subprocess.run([sys.executable, "-m", "bqltop", *words], capture_output=True, text=True, env=environment,
                              timeout=timeout, stdin=subprocess.DEVNULL)  # fmt: skip
        assert "Traceback" not in done.stderr
        return done.returncode, done.stdout, done.stderr

    return run


def test_all_knobs_in_a_table(veth_pair, bqltop):
    end = veth_pair(queues=2).sender
    status, out, err = bqltop("tune", end.device, "--netns", end.netns)
    assert (status, err) == (0, "")
    lines = out.splitlines()
    assert lines[0].split() == ["KNOB", "VALUE", "UNIT", "TAKES"]
    row = next(line for line in lines if line.startswith("channels-tx"))
    assert row.split()[:4] == ["channels-tx", "2", "queues", "0..2"]
    assert any(line.startswith("not here: ") and "tx-usecs" in line and line.endswith("Operation not supported")
               for line in lines)  # fmt: skip
    assert {line.split()[0] for line in lines} >= {"tso", "gro", "peer-gro", "peer-threaded", "qdisc", "txqueuelen"}


def test_all_knobs_as_json(ifb, bqltop):
    end = ifb(queues=2)
    status, out, _ = bqltop("tune", end.device, "--netns", end.netns, "--json")
    found = {knob["id"]: knob for knob in json.loads(out)["knobs"]}
    assert status == 0
    assert found["limit_min"]["queues"] == [{"index": 0, "value": 0}, {"index": 1, "value": 0}]
    assert (found["limit_min"]["low"], found["limit_min"]["high"], found["limit_min"]["unit"]) == (0, 1879048192, "bytes")
    assert (found["tx-usecs"]["value"], found["tx-usecs"]["settable"]) == (None, False)
    assert found["tx-usecs"]["why_not"] == "Operation not supported"


def test_setting_several_in_any_order_of_words(ifb, bqltop):
    end = ifb(queues=2)
    status, out, err = bqltop("tune", "--netns", end.netns, end.device, "txqueuelen=55", "--queue", "1", "limit_min=2000")
    assert (status, err) == (0, "")
    assert out == (
        "txqueuelen: 32 -> 55\nlimit_min of queue 1: 0 -> 2000; pending until the next completion\n"
    )
    status, out, _ = bqltop("tune", end.device, "--netns", end.netns, "--json", "limit_min=3000", "limit_max=2000")
    one = json.loads(out)["changes"][0]
    assert status == 0
    assert (one["old"], one["kept"], one["asked"], one["pending"]) == ([0, 2000], [3000, 3000], 3000, True)
    assert "above limit_max" in one["warnings"][0]


def test_what_is_kept_on_purpose_is_not_nagged_about_but_can_be_taken_back(ifb, bqltop):
    end = ifb()
    bqltop("tune", end.device, "--netns", end.netns, "txqueuelen=55")
    bqltop("tune", end.device, "--netns", end.netns, "txqueuelen=56")
    _, _, err = bqltop("tune", end.device, "--netns", end.netns)
    assert err == ""
    assert bqltop("restore", end.device)[1] == f"nothing to restore on {end.device}\n"
    status, out, _ = bqltop("restore", end.device, "--kept")
    assert (status, out) == (0, f"{end.device} (netns {end.netns}): txqueuelen: 56 back to 32\n")
    _, out, _ = bqltop("journal")
    assert [line.split()[-1] for line in out.splitlines()[1:]] == ["undone", "undone", "done"]
    status, out, _ = bqltop("journal", end.device, "--json")
    assert [json.loads(line)["asked"] for line in out.splitlines()] == [55, 56, 32]


def test_a_refused_write_is_status_1_with_the_kernels_words(veth_pair, bqltop):
    end = veth_pair(queues=2).sender
    status, out, err = bqltop("tune", end.device, "--netns", end.netns, "channels-tx=0", "txqueuelen=9")
    assert status == 1
    assert out == ""
    assert "channels-tx stays 2: requested channel counts would result in no RX or TX channel" in err
    assert "(errno 22)" in err
    assert "not tried: txqueuelen" in err
    status, out, _ = bqltop("tune", end.device, "--netns", end.netns, "channels-tx=0", "--json")
    assert status == 1
    assert json.loads(out)["changes"][0]["errno"] == 22


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["tune", "no-such-device"], "there is no device"),
        (["tune", "lo", "--netns", "no-such-namespace"], "no network namespace"),
        (["tune", "lo", "limit_min"], "is not KNOB=VALUE"),
        (["tune", "lo", "=5"], "is not KNOB=VALUE"),
        (["tune", "lo", "txqueuelen=5", "txqueuelen=6"], "set twice"),
        (["tune", "lo", "txqueuelen=a"], "whole number"),
        (["tune", "lo", "txqueuelen=99999999999"], "takes 0..4294967295"),
        (["tune", "lo", "txqueulen=5"], "did you mean txqueuelen"),
        (["tune", "lo", "--queue", "x"], "not a queue number"),
        (["tune", "lo", "--trial", "-1", "txqueuelen=5"], "not a number of seconds"),
        (["tune"], "required"),
    ],
)
def test_bad_input_is_status_2_and_one_line(bqltop, words, says):
    status, out, err = bqltop(*words)
    assert (status, out) == (2, "")
    assert err.count("\n") == 1
    assert err.startswith("bqltop: ")
    assert says in err


def test_dry_run_says_the_commands_and_does_nothing(ifb, bqltop):
    end = ifb(queues=2)
    status, out, _ = bqltop("tune", end.device, "--netns", end.netns, "--dry-run", "limit_min=2000", "txqueuelen=5")
    assert status == 0
    assert out.splitlines()[1] == f"ip netns exec {end.netns} ip link set dev {end.device} txqueuelen 5"
    assert '"txqueuelen", "value": 32' in bqltop("tune", end.device, "--netns", end.netns, "--json")[1].replace(
        f', "device": "{end.device}", "netns": "{end.netns}"', ""
    )


def test_read_only_and_a_journal_that_cannot_be_written(ifb, bqltop, tmp_path):
    end = ifb()
    status, _, err = bqltop("tune", end.device, "--netns", end.netns, "--read-only", "txqueuelen=5")
    assert (status, err) == (1, "bqltop: txqueuelen stays 32: bqltop runs with --read-only\n")
    (tmp_path / "state").rmdir() if (tmp_path / "state").exists() else None
    (tmp_path / "state").write_text("")
    status, _, err = bqltop("tune", end.device, "--netns", end.netns, "txqueuelen=5")
    assert status == 1
    assert "journal" in err
    assert bqltop("tune", end.device, "--netns", end.netns, "txqueuelen=5", "--no-journal")[0] == 0


def test_a_trial_ends_by_itself_and_by_sigterm(ifb, bqltop, tmp_path):
    end = ifb()
    status, out, err = bqltop("tune", end.device, "--netns", end.netns, "txqueuelen=5", "--trial", "0.3")
    assert status == 0
    assert out == "txqueuelen: 32 -> 5\ntxqueuelen: 5 back to 32\n"
    assert "on trial for 0.3 s" in err
    environment = {**os.environ, "BQLTOP_STATE_DIR": str(tmp_path / "state")}
    words = [sys.executable, "-m", "bqltop", "tune", end.device, "--netns", end.netns, "txqueuelen=5", "--trial", "60"]
    with subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout.readline() == "txqueuelen: 32 -> 5\n"
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=10) == -signal.SIGTERM
    path = f"/sys/class/net/{end.device}/tx_queue_len"
    shown = subprocess.run(["ip", "netns", "exec", end.netns, "cat", path], capture_output=True, text=True).stdout
    assert shown == "32\n"
    assert bqltop("restore")[1] == "nothing to restore\n"


def test_a_killed_run_is_spoken_of_and_restored_or_forgotten(ifb, bqltop, tmp_path):
    end = ifb()
    environment = {**os.environ, "BQLTOP_STATE_DIR": str(tmp_path / "state")}
    for number, ending in enumerate((["restore", end.device], ["restore", end.device, "--forget"])):
        words = [sys.executable, "-m", "bqltop", "tune", end.device, "--netns", end.netns, f"txqueuelen={5 + number}"]
        with subprocess.Popen([*words, "--trial", "60"], env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              text=True) as process:  # fmt: skip
            process.stdout.readline()
            process.kill()
        _, _, err = bqltop("tune", end.device, "--netns", end.netns)
        assert f"an earlier run left {end.device} (netns {end.netns}): txqueuelen: 32 -> {5 + number}, by " in err
        assert bqltop("restore", "")[1] == "nothing to restore\n"  # an unset variable must not mean "everything"
        assert bqltop("restore", "--netns", "")[0] == 2
        assert bqltop("restore", "--list")[1].startswith(f"{end.device} (netns {end.netns}): txqueuelen: 32 -> ")
        assert bqltop(*ending)[0] == 0
        assert bqltop("restore")[1] == "nothing to restore\n"
