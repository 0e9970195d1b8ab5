"""Outputs and recordings of a real device under flood."""

import json
import re
import signal
import subprocess
import sys
import time
import urllib.request

import pytest

from bqltop.recording import Recording

BQLTOP = (sys.executable, "-m", "bqltop")


@pytest.fixture
def flooded(require_root, lab):
    made = lab(rules=200)
    made.start_flood()
    return made


def test_prometheus_scrapes_a_real_device(flooded):
    words = ["export", "--prometheus", flooded.sender.device, "--netns", flooded.sender.netns, "--listen", "127.0.0.1:0"]
    child = subprocess.Popen([*BQLTOP, *words, "--interval", "0.2"], stderr=subprocess.PIPE, text=True)
    try:
        url = re.search(r"http://\S+", child.stderr.readline())[0]
        deadline, text = time.monotonic() + 20, ""
        while "bqltop_queue_packets_total{" not in text and time.monotonic() < deadline:
            time.sleep(0.2)
            text = urllib.request.urlopen(url, timeout=5).read().decode()
        counts = [float(line.split()[-1]) for line in text.splitlines() if line.startswith("bqltop_qdisc_packets_total{")]
        assert counts
        assert counts[0] > 0
        assert f'netns="{flooded.sender.netns}"' in text
    finally:
        child.send_signal(signal.SIGINT)
        assert child.wait(10) == 130
        assert child.stderr.read() == ""


def test_a_killed_recorder_leaves_what_it_saw(flooded, tmp_path):
    path = tmp_path / "x.jsonl.gz"
    words = [flooded.sender.device, "--netns", flooded.sender.netns, "--json", "--interval", "0.1", "--record", str(path)]
    child = subprocess.Popen([*BQLTOP, *words], stdout=subprocess.PIPE)
    lines = [json.loads(child.stdout.readline()) for _ in range(30)]
    child.kill()
    child.wait(10)
    child.stdout.close()
    with Recording(path) as recording:
        recorded = {sample.time_ns: sample for sample in recording.samples()}
    shown = [line for line in lines if line["time_ns"] in recorded]
    # the baseline and what came within a second of the kill are the most that may differ
    assert len(shown) >= 15
    for line in shown:
        assert recorded[line["time_ns"]].queues[0].packets == line["queues"][0]["packets"]
    replayed = subprocess.run([*BQLTOP, "replay", str(path), "--json"], capture_output=True, check=True, text=True)
    assert len(replayed.stdout.splitlines()) == len(recorded) - 1
