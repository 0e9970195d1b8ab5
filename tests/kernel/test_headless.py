"""`bqltop DEV --json`, --text and --csv as a script runs them."""

from __future__ import annotations

import csv
import io
import json
import signal
import subprocess
import sys

import pytest
from looking import ROOT, bqltop, ip_counters, one_line, one_object, said_by, tc_qdiscs

pytestmark = pytest.mark.usefixtures("require_root")

BQLTOP = [sys.executable, "-m", "bqltop"]

QUEUE_NAMES = {
    "index", "drv_xoff", "stack_xoff", "frozen", "unit", "limit", "limit_min", "limit_max", "hold_time_ms", "inflight",
    "packets", "busy", "completed", "stops_driver", "stops_bql", "stopped_driver_ns", "stopped_bql_ns", "ring_size",
    "ring_used", "tx_timeouts",
}  # fmt: skip


def test_one_object_says_what_the_device_is_and_does(lab):
    built = lab(rules=10000)
    built.start_flood()
    told = one_object(bqltop("veth0", "--netns", built.sender.netns, "--json", "--once"))
    device = told["device"]
    assert told["schema"] == 1
    assert (device["name"], device["ifindex"], device["driver"]) == ("veth0", built.sender.ifindex, "veth")
    assert device["netns"] == built.sender.netns
    assert device["peer"]["name"] == "veth1"
    (queue,) = told["queues"]
    assert queue.keys() >= QUEUE_NAMES
    assert (queue["ring_size"], queue["unit"], queue["limit"]) == (256, None, None)
    assert 0 < queue["packets"] <= ip_counters(built.sender, "tx")["packets"]
    (qdisc,) = told["qdiscs"]
    (by_tc,) = tc_qdiscs(built.sender)
    assert (qdisc["kind"], qdisc["handle"], qdisc["parent"]) == ("pfifo", by_tc["handle"], "root")
    assert 0 < qdisc["packets"] <= by_tc["packets"]
    assert all(probe["in_force"] or probe["why"] for probe in told["probes"])
    (napi,) = told["napis"]
    assert (napi["device"], napi["polls"] > 0, napi["work"] > 0) == ("veth1", True, True)
    window = told["window"]
    assert window["queues"][0]["packets_per_s"] > 1000
    assert window["queues"][0]["stopped_share"] > 0.5


def test_count_lines_of_growing_counters(lab):
    built = lab()
    built.start_flood()
    done = bqltop("veth0", "--netns", built.sender.netns, "--json", "--count", "3", "--interval", "0.1")
    assert (done.returncode, done.stderr) == (0, "")
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(told) == 3
    for name in ("packets", "stopped_driver_ns", "stops_driver"):
        counted = [sample["queues"][0][name] for sample in told]
        assert counted == sorted(counted)
        assert counted[0] < counted[-1]
    assert [sample["monotonic_ns"] for sample in told] == sorted(sample["monotonic_ns"] for sample in told)


@pytest.mark.parametrize("format", ["--text", "--csv"])
def test_lines_for_people_and_tables(veth_pair, format):
    pair = veth_pair()
    done = bqltop("veth0", "--netns", pair.sender.netns, format, "--count", "2", "--interval", "0.1")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert len(lines) == 3  # a heading, then one of each sample
    assert "null" not in done.stdout


def test_a_reader_that_goes_away_ends_it_without_a_word(veth_pair):
    pair = veth_pair()
    words = [*BQLTOP, "veth0", "--netns", pair.sender.netns, "--json", "--interval", "0.05"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT) as process:
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(timeout=20) == 0


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, -signal.SIGTERM)])
def test_a_signal_ends_it_without_a_traceback(veth_pair, number, status):
    pair = veth_pair()
    words = [*BQLTOP, "veth0", "--netns", pair.sender.netns, "--json", "--interval", "0.05"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT) as process:
        process.stdout.readline()
        process.send_signal(number)
        out, err = process.communicate(timeout=20)
        assert err == b""
        assert process.returncode in (status, 128 + number)
        assert all(json.loads(line) for line in out.splitlines())  # no line is cut


def test_an_unknown_device_names_those_that_are(veth_pair):
    pair = veth_pair()
    line = one_line(bqltop("eth7", "--netns", pair.sender.netns, "--json", "--once"))
    assert '"eth7"' in line
    assert "veth0" in line


def test_an_unknown_namespace_is_one_line():
    assert "no-such" in one_line(bqltop("lo", "--netns", "no-such", "--json", "--once"))


@pytest.mark.parametrize("words", [["lo"], ["demo"]])
def test_without_a_terminal_one_line_names_the_way_out(words):
    line = one_line(bqltop(*words))
    assert "--json" in line
    assert "--text" in line


def test_the_demo_runs_without_a_terminal():
    done = bqltop("demo", "--once", "--json", "--rules", "3000")
    assert done.returncode == 0
    told = json.loads(done.stdout)
    assert (told["device"]["name"], told["device"]["kind"]) == ("veth0", "veth")
    assert told["window"]["queues"][0]["packets_per_s"] > 0
    assert "Traceback" not in done.stderr
    assert "netns add" in done.stderr  # it says what it builds


HOSTILE = ["[red]", "x'y\"z", "é1", "-x", "[b]", "$(id)", "a\\n"]


@pytest.mark.parametrize("name", HOSTILE)
def test_a_device_may_be_called_anything(veth_pair, name):
    pair = veth_pair()
    said_by("ip", "-n", pair.sender.netns, "link", "set", "dev", "veth0", "name", name)
    place = ("--netns", pair.sender.netns, "--once")
    assert one_object(bqltop("--json", *place, "--", name))["device"]["name"] == name
    text = bqltop("--text", *place, "--", name)
    assert (text.returncode, text.stderr) == (0, "")
    table = bqltop("--csv", *place, "--", name)
    assert (table.returncode, table.stderr) == (0, "")
    (row,) = csv.DictReader(io.StringIO(table.stdout))
    assert name in row.values()
