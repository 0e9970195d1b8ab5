"""A recording replays up to wherever it was cut, and a hostile one gets one line."""

import contextlib
import gzip
import json
import os
import shutil
import subprocess
import sys
import threading
import zlib
from argparse import Namespace
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from made_up import START_NS, Source, sample, samples, with_event

from bqltop.model import SCHEMA, Event
from bqltop.recording import Recorder, Recording, RecordingError, jsonline, reader, writer
from bqltop.recording.codec import to_dict
from bqltop.recording.options import recorded
from bqltop.tui.record import RecordKey


def record(path, items, **options):
    with Recorder(path, **options) as recorder:
        for item in items:
            (recorder.event if isinstance(item, Event) else recorder.sample)(item)
    assert recorder.stopped == "closed"
    assert recorder.lost == 0
    return path


def lines_of(items) -> bytes:
    return b"".join(jsonline.dumps(to_dict(item, with_window=False)).encode() + b"\n" for item in items)


@pytest.mark.parametrize("name", ["x.jsonl.gz", "x", "x.jsonl"])
def test_what_goes_in_comes_out(tmp_path, name):
    items = samples(20, queues=3)
    with Recording(record(tmp_path / name, items, about={"kernel": "7.3"})) as recording:
        assert list(recording.samples()) == items
        assert recording.sample(11) == items[11]
        assert recording.header["about"] == {"kernel": "7.3"}
        assert recording.notice is None
        assert recording.device == items[0].device


def test_standard_tools_read_it(tmp_path):
    path = record(tmp_path / "x.jsonl.gz", samples(5))
    text = subprocess.run(["zcat", str(path)], capture_output=True, check=True).stdout
    assert [json.loads(line)["schema"] for line in text.splitlines()] == [SCHEMA] * 6


def test_events_come_with_the_sample_they_were_recorded_before(tmp_path):
    change = Event(START_NS + 150_000_000, "knob", "limit_min 0 -> 8", 0)
    last = replace(change, text="the last word")
    path = record(tmp_path / "x", [sample(0), with_event(sample(1)), change, sample(2), last])
    with Recording(path) as recording:
        assert list(recording.marks) == [1, 2]
        assert recording.sample(2).events == (change,)
        assert recording.trailing(0) == [last]


def test_events_of_several_devices_each_find_their_own(tmp_path):
    change = Event(START_NS + 150_000_000, "setting", "limit_min 0 -> 8", 0)
    with Recorder(tmp_path / "x") as recorder:
        for tick in range(3):
            for stream in (0, 1):
                if (tick, stream) == (1, 1):
                    recorder.event(change, 0)
                recorder.sample(sample(tick, stream=stream))
        recorder.event(replace(change, text="the last word"), 1)
    with Recording(tmp_path / "x") as recording:
        assert recording.streams == [0, 1]
        assert [(s.stream, s.monotonic_ns) for s in recording.samples() if s.events == (change,)] == [(0, sample(2).monotonic_ns)]
        assert recording.trailing(0) == []
        assert [event.text for event in recording.trailing(1)] == ["the last word"]


def test_more_devices_than_anybody_watches_are_an_end(tmp_path, monkeypatch):
    monkeypatch.setattr(reader, "MAX_STREAMS", 5)
    path = record(tmp_path / "x", [sample(0, stream=stream) for stream in range(9)])
    with Recording(path) as recording:
        assert len(recording) == 5
        assert recording.notice == "damaged: more than 5 devices"


def test_a_clock_that_was_set_back_is_not_time_that_passed(tmp_path):
    hour = 3600 * 10**9
    items = [replace(s, time_ns=s.time_ns - (hour if tick >= 20 else 0)) for tick, s in enumerate(samples(50))]
    with Recording(record(tmp_path / "x", items)) as recording:
        assert list(recording.elapsed) == [tick * 10**8 for tick in range(50)]
        assert list(recording.times) == sorted(recording.times)
        timeline = recording.timeline
        assert (timeline.first_from("+3s"), timeline.last_to("-1s")) == (30, 39)


def test_another_boot_of_the_host_begins_anew_by_the_wall_clock(tmp_path):
    items = samples(4)
    items = [*items[:2], *(replace(s, monotonic_ns=s.monotonic_ns - items[2].monotonic_ns) for s in items[2:])]
    with Recording(record(tmp_path / "x", items)) as recording:
        assert list(recording.elapsed) == [0, 10**8, 2 * 10**8, 3 * 10**8]


def test_by_time(tmp_path):
    items = samples(10)
    with Recording(record(tmp_path / "x", items)) as recording:
        assert list(recording.samples(items[3].time_ns, items[5].time_ns)) == items[3:6]
        assert recording.number_at(items[4].time_ns + 1) == 4
        assert recording.number_at(0) == 0


def test_a_recorder_in_full_cry_loses_at_most_a_second(tmp_path, monkeypatch):
    monkeypatch.setattr(writer, "FLUSH_S", 0.0)
    recorder = Recorder(tmp_path / "x.gz")
    for one in samples(10):
        recorder.sample(one)
    while recorder.samples < 10 or not recorder._waiting.empty():
        pass
    with Recording(tmp_path / "x.gz") as recording:  # the writer has not closed it, and never will
        assert len(recording) >= 9
    recorder.close()


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A finished recording of 30 samples, flushed after each, and its bytes."""
    path = tmp_path_factory.mktemp("whole") / "x.jsonl.gz"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writer, "FLUSH_S", 0.0)
        record(path, samples(30))
    return path.read_bytes()


def test_cut_off_at_any_byte_it_gives_every_whole_line(tmp_path, whole):
    items, seen, path = samples(30), -1, tmp_path / "cut.jsonl.gz"
    for length in (*range(0, len(whole) - 150, 7), *range(len(whole) - 150, len(whole) + 1)):
        path.write_bytes(whole[:length])
        text = zlib.decompressobj(31).decompress(whole[:length])
        expected = max(0, text.count(b"\n") - 1)
        try:
            with Recording(path) as recording:
                # the last line may be whole but for its newline
                assert expected <= len(recording) <= expected + 1
                assert recording.sample(len(recording) - 1) == items[len(recording) - 1]
                seen = max(seen, len(recording))
        except RecordingError as error:
            assert expected == 0, error  # noqa: PT017 - either outcome is right, each for its lengths
    assert seen == 30


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(at=st.integers(0), flip=st.integers(1, 255))
def test_a_damaged_file_gives_samples_or_one_line(tmp_path, whole, at, flip):
    data = bytearray(whole)
    data[at % len(data)] ^= flip
    path = tmp_path / "damaged.gz"
    path.write_bytes(data)
    with contextlib.suppress(RecordingError), Recording(path) as recording:
        for number in range(len(recording)):
            recording.sample(number)


def test_damage_further_on_ends_the_recording_there(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_bytes(lines_of(samples(3)) + b"garbage\n" + lines_of(samples(3)))
    with Recording(path) as recording:
        assert len(recording) == 3
        assert "not JSON" in recording.notice


HOSTILE = {
    "nothing": b"",
    "text": b"hello\n",
    "binary": bytes(range(256)) * 100,
    "a list": b"[1,2,3]\n",
    "deep nesting": b"[" * 1_000_000 + b"\n",
    "deep objects": b'{"a":' * 500_000 + b"\n",
    "other JSON lines": b'{"a":1}\n' * 5,
    "newer header": b'{"recording":9,"schema":%d}\n' % (SCHEMA + 1),
    "newer sample": lines_of([replace(sample(0), schema=SCHEMA + 1)]),
    "newer sample, no newline": lines_of([replace(sample(0), schema=SCHEMA + 1)]).strip(),
    "schema of another type": b'{"recording":1,"schema":[]}\n',
    "wrong types": b'{"schema":1,"time_ns":1,"monotonic_ns":"x"}\n',
    "wrong time": b'{"schema":1,"time_ns":9999999999999999999,"queues":[]}\n',
    "no time": b'{"queues":[],"schema":1}\n',
    "bad event": b'{"event":[1]}\n',
    "half a gzip header": b"\x1f\x8b\x08",
    "gzip of nothing": gzip.compress(b""),
    "gzip of text": gzip.compress(b"hello\n" * 100_000),
    "numbers of a million digits": b'{"schema":1,"time_ns":1,"monotonic_ns":' + b"1" * 1_000_000 + b"}\n",
}


@pytest.mark.parametrize("what", HOSTILE)
def test_a_file_that_is_no_recording_gets_one_line(tmp_path, what):
    path = tmp_path / "x"
    path.write_bytes(HOSTILE[what])
    with pytest.raises(RecordingError) as caught:
        Recording(path)
    message = str(caught.value)
    assert message.startswith(str(path))
    assert "\n" not in message
    assert len(message) < len(str(path)) + 150
    assert ("newer" in message) == ("newer" in what)


def test_missing_files_and_folders(tmp_path):
    for path in (tmp_path, tmp_path / "none", tmp_path / "none" / "x"):
        with pytest.raises(RecordingError, match=r"cannot read"):
            Recording(path)


def test_a_packed_flood_of_zeros_does_not_fill_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(reader, "MAX_LINE", 1 << 20)
    path = tmp_path / "bomb.gz"
    path.write_bytes(gzip.compress(b"\0" * (64 << 20)))
    with pytest.raises(RecordingError, match="longer than 1 MiB"):
        Recording(path)


def test_output_of_json_and_edited_files_replay_too(tmp_path):
    items = samples(4)
    path = tmp_path / "x.jsonl"
    path.write_bytes(lines_of(items[:2]))
    with path.open("a") as file:  # as `jq -S` writes it
        file.writelines(json.dumps(to_dict(item), sort_keys=True) + "\n\n" for item in items[2:])
    with Recording(path) as recording:
        assert list(recording.samples()) == items


def test_gzip_members_one_after_the_other(tmp_path):
    path = tmp_path / "x.gz"
    path.write_bytes(gzip.compress(lines_of(samples(4)[:2])) + gzip.compress(lines_of(samples(4)[2:])))
    with Recording(path) as recording:
        assert list(recording.samples()) == samples(4)


def test_random_access_in_a_long_file(tmp_path, monkeypatch):
    monkeypatch.setattr(reader, "BLOCK", 1 << 12)
    monkeypatch.setattr(reader, "CHUNK", 1 << 11)
    monkeypatch.setattr(reader, "CHECKPOINTS", 10)
    monkeypatch.setattr(reader, "SEGMENT", 3000)
    monkeypatch.setattr(reader, "CACHED_SEGMENTS", 3)
    items = samples(120)
    for name in ("x.gz", "x.jsonl"):
        with Recording(record(tmp_path / name, items)) as recording:
            for number in (119, 0, 60, 61, 1, 118, 77, 30):
                assert recording.sample(number) == items[number]
                assert sum(map(len, recording._text._segments.values())) <= 9000, "however long the file is"
            assert list(recording.samples()) == items
            assert [recording.sample(number) for number in range(119, -1, -1)] == items[::-1]


def test_all_samples_before_the_damage_are_there(tmp_path):
    """Damage in a piece of the file takes nothing from before it."""
    noisy = [replace(sample(tick), events=(Event(0, "noise", os.urandom(900).hex()),)) for tick in range(40)]
    path = record(tmp_path / "x.gz", noisy)
    data = bytearray(path.read_bytes())
    half = len(data) // 2
    data[half : half + 200] = bytes(200)
    path.write_bytes(data)
    with Recording(path) as recording:
        assert recording.notice.startswith("damaged")
        # from about the 20th on a line may have been unpacked into something else before the damage was noticed
        assert [recording.sample(number) for number in range(18)] == noisy[:18]


# ---- writing


def test_an_existing_file_is_not_overwritten(tmp_path):
    path = record(tmp_path / "x", samples(1))
    with pytest.raises(RecordingError, match="exists already"):
        Recorder(path)
    with pytest.raises(RecordingError, match="No such file"):
        Recorder(tmp_path / "none" / "x")


def test_rotation_by_size_keeps_so_many(tmp_path, monkeypatch):
    monkeypatch.setattr(writer, "FLUSH_S", 0.0)
    path = tmp_path / "x.jsonl.gz"
    noisy = [replace(sample(tick), events=(Event(0, "noise", os.urandom(900).hex()),)) for tick in range(60)]
    record(path, noisy, max_bytes=10_000, keep=3)
    names = sorted(p.name for p in tmp_path.iterdir())
    assert names == ["x.1.jsonl.gz", "x.2.jsonl.gz", "x.3.jsonl.gz", "x.jsonl.gz"]
    together = []
    for name in reversed(names[:3]):
        with Recording(tmp_path / name) as part:
            assert part.header["recording"] == 1
            together.extend(part.samples())
    with Recording(path) as part:
        together.extend(part.samples())
    assert together == noisy[-len(together) :]


def test_rotation_by_age_and_of_a_file_left_there(tmp_path):
    path = tmp_path / "x"
    record(path, samples(3), max_age_s=3600)
    record(path, samples(4), max_age_s=0.000001)
    assert (tmp_path / "x.1").exists()
    assert (tmp_path / "x.4").exists()


@pytest.mark.parametrize(
    ("name", "first"),
    [("a.jsonl.gz", "a.1.jsonl.gz"), ("a", "a.1"), ("web-1.example.gz", "web-1.example.1.gz"), (".gz", ".gz.1")],
)
def test_rotated_names(tmp_path, name, first):
    assert writer.numbered(tmp_path / name, 1).name == first


class FullDisk(writer.LineFile):
    def _write(self, data):
        if self.size + len(data) > 3000:
            raise OSError(28, "No space left on device")
        super()._write(data)


def test_a_full_disk_stops_the_recording_and_nothing_else(tmp_path, monkeypatch):
    monkeypatch.setattr(writer, "LineFile", FullDisk)
    monkeypatch.setattr(writer, "FLUSH_S", 0.0)
    recorder = Recorder(tmp_path / "x.gz")
    noisy = [replace(sample(tick), events=(Event(0, "noise", os.urandom(900).hex()),)) for tick in range(60)]
    for one in noisy:
        recorder.sample(one)
    recorder._thread.join(5)
    recorder.sample(sample(1))
    assert recorder.stopped == f"recording to {tmp_path / 'x.gz'} stopped: No space left on device"
    recorder.close()
    with Recording(tmp_path / "x.gz") as recording:
        assert list(recording.samples()) == noisy[: len(recording)]


def test_a_disk_that_is_full_only_at_the_end_is_told_too(tmp_path, monkeypatch, capsys):
    """What was waiting in the packer is written by the end, which is then the first to fail."""
    monkeypatch.setattr(writer, "LineFile", FullDisk)
    noisy = [replace(sample(tick), events=(Event(0, "noise", os.urandom(900).hex()),)) for tick in range(8)]
    with recorded(Source(noisy), Namespace(record=str(tmp_path / "x.gz"), record_size=None, record_age=None)) as source:
        assert list(source.every(0.1)) == noisy
        key = RecordKey(Source([]), tmp_path)
        key.toggle("veth0")
        for one in noisy:
            key.take(one)
        assert key.end().endswith("stopped: No space left on device")
    assert capsys.readouterr().err == f"bqltop: recording to {tmp_path / 'x.gz'} stopped: No space left on device\n"


def test_a_disk_that_hangs_at_the_end_is_not_called_a_recording(tmp_path, monkeypatch):
    monkeypatch.setattr(writer, "PATIENCE_S", 0.1)
    recorder, hung = Recorder(tmp_path / "x"), threading.Event()
    monkeypatch.setattr(recorder._writer, "write", lambda line: hung.wait(20))
    recorder.sample(sample(0))
    recorder.close()
    assert "the disk hangs" in recorder.failure
    hung.set()
    recorder._thread.join(5)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
def test_the_real_thing(tmp_path, monkeypatch):
    real = open

    def full(path, mode="r", **named):
        return real("/dev/full", "wb", **named) if mode == "xb" else real(path, mode, **named)

    monkeypatch.setattr("builtins.open", full)
    with pytest.raises(RecordingError, match="No space left"):
        Recorder(tmp_path / "x")


def test_a_slow_disk_is_not_waited_for(tmp_path, monkeypatch):
    monkeypatch.setattr(writer, "BACKLOG", 5)
    recorder = Recorder(tmp_path / "x")
    monkeypatch.setattr(recorder._writer, "write", lambda line: __import__("time").sleep(0.02))
    for one in samples(30):
        recorder.sample(one)
    assert recorder.lost > 0
    recorder.close()


# ---- versions and machines


def test_the_recording_of_schema_1_stays_readable():
    path = os.path.join(os.path.dirname(__file__), "recordings", "schema-1.jsonl.gz")
    with Recording(path) as recording:
        assert recording.notice is None
        assert len(recording) == 5
        assert list(recording.samples()) == [with_event(s) if i == 3 else s for i, s in enumerate(samples(5, queues=2))]


def test_replaying_imports_nothing_of_linux():
    script = (
        "import sys; import bqltop.recording, bqltop.report, bqltop.history, bqltop.eventlog, bqltop.output.command\n"
        "bad = [m for m in sys.modules if m.split('.')[0] in ('pyroute2','bcc','psutil','textual','prometheus_client')"
        " or m.startswith(('bqltop.kernel','bqltop.tui','bqltop.sampler'))]\n"
        "assert not bad, bad\n"
        "bad = [m for m in ('fcntl','resource','termios') if m in sys.modules]\n"
        "assert not bad, bad"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_it_is_small(tmp_path):
    path = record(tmp_path / "x.gz", samples(200))
    assert path.stat().st_size / 200 < 300
    assert shutil.which("zcat")
