"""``--record`` and ``bqltop replay`` by their command lines."""

import argparse
import json
import os
import subprocess
import sys
from dataclasses import replace

import pytest
from made_up import Source, sample, samples

from bqltop import output
from bqltop.cli import main
from bqltop.eventlog import finder
from bqltop.model import Event
from bqltop.recording import Recorder, Recording, RecordingError, options
from bqltop.recording.replay import Replay
from bqltop.recording.tee import Recorded


def record_arguments(*words):
    parser = argparse.ArgumentParser()
    options.add_record(parser)
    return parser.parse_args([str(word) for word in words])


class Live(Source):
    interval, description, closed = 1.0, "a device", False

    def close(self):
        self.closed = True


def test_what_passes_is_recorded_with_the_events_found_in_it(tmp_path, capsys):
    path, source = tmp_path / "x.gz", Live(samples(10))
    source.ready[4] = replace(source.ready[4], queues=(replace(source.ready[4].queues[0], tx_timeouts=1),))
    source.ready[5:] = [replace(s, queues=(replace(s.queues[0], tx_timeouts=1),)) for s in source.ready[5:]]
    with options.recorded(source, record_arguments("--record", path), load="lab") as watched:
        assert watched.description == "a device"
        watched.interval = 0.5
        seen = []
        for one in watched.every(0.25):
            seen.append(one)
            if len(seen) == 7:
                watched.event(Event(one.time_ns, "setting", "you: limit_min 0 -> 8"))
        watched.close()
    assert (source.interval, source.closed) == (0.25, True) or source.closed
    assert seen == source.ready
    with Recording(path) as recording:
        assert recording.header["about"]["load"] == "lab"
        assert "kernel" in recording.header["about"]
        assert [event.kind for event in recording.sample(4).events] == ["watchdog"]
        assert [event.kind for event in recording.sample(7).events] == ["setting"]
        assert replace(recording.sample(4), events=()) == source.ready[4]
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("told", [False, True])
def test_a_changed_setting_is_found_unless_somebody_else_tells_of_all(tmp_path, told):
    """The sample that shows our own change may come before we have told of it."""
    items = samples(4)
    items[2:] = [replace(one, queues=(replace(one.queues[0], limit_min=8),)) for one in items[2:]]
    with Recorder(tmp_path / "x") as recorder:
        watched = Recorded(Live(items), recorder, settings=not told)
        for number, _one in enumerate(watched.every(0.1)):
            if number == 2 and told:
                watched.event(Event(items[2].time_ns, "setting", "you: limit_min 0 -> 8"))
    with Recording(tmp_path / "x") as recording:
        found = [event.text for one in recording.samples() for event in one.events if event.kind == "setting"]
    assert found == (["you: limit_min 0 -> 8"] if told else ["somebody set limit_min 0 -> 8"])


def test_a_recording_tells_its_events_and_the_bare_output_of_json_is_searched(tmp_path):
    """Played fast, most samples are left out: found in the rest, a jump of the limit would be missing or another one."""
    items = samples(400)
    items[101:103] = [replace(one, queues=(replace(one.queues[0], limit=300),)) for one in items[101:103]]
    with Recorder(tmp_path / "recording") as recorder:
        list(Recorded(Live(items), recorder).every(0.1))
    with (tmp_path / "json").open("w") as file:
        output.run("json", Source(items), file)
    found = {}
    for name in ("recording", "json"):
        with Replay(tmp_path / name, speed=100.0) as replay:
            search = finder(replay.header)
            shown = list(replay.every())
            found[name] = [event.text for one in shown for event in search.feed(one)]
            assert len(shown) < 40
    assert found["recording"] == ["pfifo 8002: drops 310k packets/s", "limit 16 -> 300 packets", "limit 300 -> 16 packets"]
    assert found["json"] == ["pfifo 8002: drops 310k packets/s"]


def test_without_record_nothing_changes():
    source = Live([])
    with options.recorded(source, record_arguments()) as same:
        assert same is source


def test_a_recording_that_stops_is_told_once(tmp_path):
    told = []
    with Recorder(tmp_path / "x") as recorder:
        recorder.stopped = "recording stopped: No space left on device"
        assert len(list(Recorded(Live(samples(5)), recorder, told.append).every(0.1))) == 5
    assert told == ["recording stopped: No space left on device"]


def test_an_existing_file_is_an_error_before_anything_starts(tmp_path):
    (tmp_path / "x").write_text("mine")
    wanted = record_arguments("--record", tmp_path / "x")
    with pytest.raises(RecordingError, match="exists already"), options.recorded(Live([]), wanted):
        pass
    assert (tmp_path / "x").read_text() == "mine"


@pytest.mark.parametrize(("text", "bytes"), [("500M", 500_000_000), ("2Gi", 2 << 30), ("1000", 1000), ("3kB", 3000)])
def test_sizes(text, bytes):
    assert record_arguments("--record", "x", "--record-size", text).record_size == bytes


@pytest.mark.parametrize(("text", "seconds"), [("90", 90), ("30min", 1800), ("1h", 3600), ("2d", 172_800)])
def test_ages(text, seconds):
    assert record_arguments("--record", "x", "--record-age", text).record_age == seconds


@pytest.mark.parametrize("words", [["--record-size=big"], ["--record-size=0"], ["--record-age=1y"], ["--record-age=-1"]])
def test_wrong_sizes_and_ages(words, capsys):
    with pytest.raises(SystemExit):
        record_arguments("--record", "x", *words)


# ---- replay


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "x.jsonl.gz"
    with Recorder(path) as recorder:
        for one in samples(50):
            recorder.sample(one)
    return path


def replay(*words):
    return main(["replay", *map(str, words)])


def test_lines_come_as_fast_as_they_can_be_read(path, capsys):
    assert replay(path, "--json") == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["queues"][0]["packets"] for line in lines] == [1000 * t + 18 for t in range(1, 50)]


def test_thinned_counted_and_from_a_moment_on(path, capsys):
    assert replay(path, "--json", "--interval", "1", "--count", "2", "--at", "+2s") == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["queues"][0]["packets"] for line in lines] == [20_018, 30_018]
    assert replay(path, "--text", "--once") == 0
    assert len(capsys.readouterr().out.splitlines()) == 2


def test_a_cut_recording_says_so_at_the_end(path, tmp_path, capsys):
    cut = tmp_path / "cut.gz"
    cut.write_bytes(path.read_bytes()[:-200])
    assert replay(cut, "--csv") == 0
    assert capsys.readouterr().err in ("", "bqltop: cut off: its last line is not whole\n")


@pytest.mark.parametrize("words", [["--at", "soon"], ["--at", "25:00:00"]])
def test_wrong_moments_are_one_line(path, words, capsys):
    assert replay(path, "--json", *words) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_wrong_files_are_one_line(tmp_path, capsys):
    (tmp_path / "bad").write_bytes(b"\x00" * 100)
    for name in ("bad", "none"):
        assert replay(tmp_path / name, "--json") == 2
        assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("text", ["0", "1000", "fast", "nan"])
def test_wrong_speeds(path, text):
    with pytest.raises(SystemExit):
        replay(path, "--json", "--speed", text)


def test_a_speed_is_kept(path, capsys):
    assert replay(path, "--json", "--speed", "100x") == 0
    assert 1 < len(capsys.readouterr().out.splitlines()) < 49
    assert sample(0)


ELSEWHERE = """
import sys

class NotHere:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {"pyroute2", "bcc", "psutil", "textual", "fcntl", "termios", "resource", "pwd", "grp"}:
            raise ImportError(name)
        if name.startswith("bqltop.kernel"):
            raise ImportError(name)

sys.meta_path.insert(0, NotHere())
sys.platform = "win32"
from bqltop import output
from bqltop.cli import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.parametrize("words", [["replay", "--text"], ["replay", "--json", "--once"], ["replay", "--csv"], ["report"]])
def test_on_a_machine_that_is_not_linux(path, words):
    command_line = [sys.executable, "-c", ELSEWHERE, words[0], str(path), *words[1:]]
    done = subprocess.run(command_line, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "veth0" in done.stdout or "stop%" in done.stdout


def test_without_root(path):
    if os.geteuid() != 0:
        pytest.skip("not root anyway")
    path.chmod(0o644)
    for folder in (path.parent, path.parent.parent, path.parent.parent.parent):
        folder.chmod(0o755)
    script = "import os, sys; os.setgid(65534); os.setuid(65534); from bqltop.cli import main; sys.exit(main(sys.argv[1:]))"
    done = subprocess.run([sys.executable, "-c", script, "report", str(path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_recording_that_is_shipped():
    from bqltop.data import DEMO
    from bqltop.model import Unit

    assert DEMO.stat().st_size < 500_000
    with Recording(DEMO) as recording:
        assert recording.notice is None
        assert "emulated" in recording.header["about"]["note"]
        items = list(recording.samples())
    settings = [event.text for item in items for event in item.events if event.kind == "setting"]
    assert len(settings) > 5
    assert all(text.startswith("you: ") for text in settings)
    assert {item.queues[0].unit for item in items[5:]} == {Unit.PACKETS}
    assert {item.queues[0].limit for item in items} >= {2, 8, 32, 64}
    assert any(item.queues[0].stack_xoff for item in items)
    assert any(item.queues[0].drv_xoff for item in items)
