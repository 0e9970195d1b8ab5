"""Recording from the screen, playing it again with the keys of a tape deck, and the page of events."""

from __future__ import annotations

import asyncio
import re
import time
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from fake_source import FakeSource
from test_live import text_of

from bqltop.model import Event
from bqltop.recording.replay import Replay
from bqltop.recording.writer import Recorder
from bqltop.tui import BqltopApp
from bqltop.tui.record import RecordKey, file_name
from bqltop.tui.tape import _clock


@pytest.fixture
def recording(tmp_path) -> Path:
    """Two minutes of a flooded veth, an event every 4.7 s."""
    path = tmp_path / "two-minutes.jsonl.gz"
    with Recorder(path) as recorder:
        for sample in FakeSource("veth").samples(1200):
            recorder.sample(sample)
            while recorder._waiting.qsize() > 100:
                time.sleep(0.01)
    return path


async def until(condition, seconds: float = 20.0) -> None:
    for _ in range(int(seconds / 0.05)):
        if condition():
            return
        await asyncio.sleep(0.05)
    raise AssertionError("did not come true")


async def test_r_records_to_a_file_of_its_own_and_ends_it(fed_app, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    app = fed_app("packets", 2)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        app.play(5)
        await pilot.press("r")
        assert "recording to " in text_of(app)
        app.play(30)
        await pilot.pause()
        assert " REC " in text_of(app)
        await pilot.press("r")
        assert "30 samples in " in text_of(app)
        app.play(1)
        assert " REC " not in text_of(app)
    (file,) = tmp_path.glob("bqltop-veth0-*.jsonl.gz")
    with Replay(file, speed=None) as replay:
        assert len(list(replay.every())) == 30


async def test_a_folder_that_cannot_be_written_is_one_line_and_no_exception(fed_app, tmp_path, monkeypatch):
    app = fed_app()
    app.record = RecordKey(app.source, tmp_path / "not there")
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        app.play(5)
        await pilot.press("r")
        assert "cannot record to" in text_of(app)
        assert " REC " not in text_of(app)


def test_file_names_hold_nothing_harmful():
    assert file_name("../[red] x\n", "m") == "bqltop-..__red__x_-m.jsonl.gz"
    assert "/" not in file_name("a/b", "m")


async def test_a_replay_plays_stops_steps_and_seeks(recording):
    app = BqltopApp(Replay(recording, speed=1.0, hold=True))
    replay = app.source
    async with app.run_test(size=(120, 40)) as pilot:
        await until(lambda: "REPLAY" in text_of(app))
        await pilot.press("space")
        assert replay.paused
        assert "PAUSED" in text_of(app)
        await asyncio.sleep(0.3)  # a sample that was on its way when the key came
        here = replay.position
        await pilot.press("right")
        await until(lambda: replay.position == here + 1)
        await pilot.press("right_square_bracket")
        await until(lambda: "REPLAY 01:0" in text_of(app))
        await until(lambda: app.feed.taken and "pkt/s" in text_of(app) and len(app.feed.history) > 100)
        assert "14:04:2" in text_of(app)
        await pilot.press("greater_than_sign")
        await pilot.press("plus")
        assert replay.speed == 2.0
        assert "REPLAY 2x" in text_of(app)
        await pilot.press(*["right_square_bracket"] * 3)
        await until(lambda: replay.at_end)
        await until(lambda: "END" in text_of(app))
        await pilot.press("greater_than_sign")
        assert "no event after this one" in text_of(app)
        await pilot.press("r")
        assert "this is a recording already" in text_of(app)
        await pilot.press("left_square_bracket")
        await until(lambda: "END" not in text_of(app))
        replay.close()


async def test_a_replay_that_begins_in_the_middle_has_a_past_on_its_chart(recording):
    replay = Replay(recording, speed=1.0, hold=True)
    replay.seek_by(70)
    app = BqltopApp(replay)
    async with app.run_test(size=(120, 40)):
        await until(lambda: len(app.feed.history) > 500)
        replay.close()


async def test_our_own_changes_are_told_once_and_not_taken_for_somebody_elses(tmp_path):
    """The samples of a recording show the change too; the recording says whose it was."""
    path = tmp_path / "tuned.gz"
    with Recorder(path) as recorder:
        for number, sample in enumerate(FakeSource("packets").samples(40)):
            if number == 20:
                recorder.event(Event(sample.time_ns, "setting", "you: limit_min 0 -> 8 packets"))
            tuned = tuple(replace(queue, limit_min=8) for queue in sample.queues)
            recorder.sample(replace(sample, queues=tuned) if number >= 20 else sample)
    app = BqltopApp(Replay(path, speed=None, hold=True))
    async with app.run_test(size=(120, 40)):
        await until(lambda: app.feed.taken == 40)
        assert app.feed.sample.queues[0].limit_min == 8
        assert [event.text for event in app.feed.events if event.kind == "setting"] == ["you: limit_min 0 -> 8 packets"]
        app.source.close()


async def test_the_log_and_the_chart_of_a_replay_are_those_of_the_place_jumped_to(recording):
    replay = Replay(recording, speed=1.0, hold=True)
    replay.pause()
    app = BqltopApp(replay)
    async with app.run_test(size=(120, 40)) as pilot:
        await until(lambda: app.feed.taken)
        replay.seek_by(60)
        await until(lambda: len(app.feed.history) > 400)
        there = app.feed.sample.time_ns
        told = [event.time_ns for event in app.feed.log]
        assert len(told) > 5
        assert max(told) <= there
        await pilot.press("left_square_bracket")
        await until(lambda: app.feed.sample.time_ns < there - 55 * 10**9)
        await until(lambda: len(app.feed.history) < 10)
        assert all(event.time_ns <= app.feed.sample.time_ns for event in app.feed.log), "nothing that is yet to come"
        replay.seek_by(100)
        await until(lambda: len(app.feed.history) > 400)
        newest = app.feed.history.span[1]
        assert newest - app.feed.history.span[0] < 65 * 10**9, "what a chart of one minute needs"
        await pilot.press("x")  # a chart of five minutes
        assert app.feed.history.span[0] <= newest - 95 * 10**9
        assert app.feed.history.span[1] >= newest
        replay.close()


def written(path, samples, events=()):
    """A recording of these samples; ``events`` are (before which sample, event, stream)."""
    with Recorder(path) as recorder:
        for number, sample in enumerate(samples):
            for before, event, stream in events:
                if before == number:
                    recorder.event(event, stream)
            recorder.sample(sample)
            while recorder._waiting.qsize() > 100:
                time.sleep(0.01)
    return path


def spoilt(path, number):
    """The file with a sample that cannot be decoded."""
    lines = path.read_text().splitlines(keepends=True)
    lines[number + 1] = re.sub(r'"busy":\d+', '"busy":"x"', lines[number + 1])
    path.write_text("".join(lines))
    return path


@asynccontextmanager
async def shown(path, **options):
    """A replay that stands at its beginning, on the screen."""
    replay = Replay(path, hold=True, **options)
    replay.pause()
    app = BqltopApp(replay)
    async with app.run_test(size=(120, 40)) as pilot:
        await until(lambda: app.feeds)
        yield app, replay, pilot
        replay.close()


async def at(app, replay, number):
    await until(lambda: replay.position == number and app.feed.sample is not None
                and app.feed.sample.time_ns == replay.walls[number])  # fmt: skip


async def test_a_sample_in_the_past_that_cannot_be_read_is_left_out_and_said(tmp_path):
    path = spoilt(written(tmp_path / "x.jsonl", FakeSource("veth").samples(200)), 100)
    async with shown(path) as (app, replay, _):
        replay.seek_to(150)
        await at(app, replay, 150)
        assert app.failure is None
        assert len(app.feed.history) == 150
        assert "sample 101" in replay.notice


async def test_a_longer_span_adds_to_what_is_there_and_a_shorter_one_takes_nothing(tmp_path):
    samples = list(FakeSource("veth").samples(900))
    spike = tuple(replace(queue, ring_used=255) for queue in samples[301].queues)
    low = [replace(s, queues=tuple(replace(queue, ring_used=3) for queue in s.queues)) for s in samples]
    low[301] = replace(low[301], queues=spike)
    async with shown(written(tmp_path / "x.jsonl", low)) as (app, replay, pilot):
        replay.seek_to(880)
        await at(app, replay, 880)
        minute = len(app.feed.history)
        assert 595 <= minute <= 605
        await pilot.press("X", "X", "x", "x")
        assert len(app.feed.history) == minute
        await pilot.press("x")
        assert len(app.feed.history) == 881
        first, last = app.feed.history.span
        assert app.feed.history.highest("ring_used", 0, first, last) == 255
        replay.step(1)
        await at(app, replay, 881)
        assert len(app.feed.history) == 882


async def test_a_longer_span_is_filled_also_while_the_device_is_away(tmp_path):
    samples = [replace(s, present=n < 700) for n, s in enumerate(FakeSource("veth").samples(760))]
    async with shown(written(tmp_path / "x.jsonl", samples)) as (app, replay, pilot):
        replay.seek_to(750)
        await at(app, replay, 750)
        before = len(app.feed.history)
        await pilot.press("x")
        assert len(app.feed.history) == 700 > before


async def test_every_device_of_a_recording_has_its_past_where_it_begins(tmp_path):
    both = [replace(s, stream=stream) for s in FakeSource("veth").samples(300) for stream in (0, 1)]
    events = [(100 + stream, Event(both[100].time_ns, "setting", f"of {stream}"), stream) for stream in (0, 1)]
    replay = Replay(written(tmp_path / "x.jsonl", both, events), hold=True)
    replay.pause()
    replay.seek_to(200)
    app = BqltopApp(replay)
    async with app.run_test(size=(120, 40)):
        await until(lambda: {len(feed.history) for feed in app.feeds.values()} == {201} and len(app.feeds) == 2)
        for stream, feed in app.feeds.items():
            assert [event.text for event in feed.events if event.kind == "setting"] == [f"of {stream}"]
        replay.close()


async def test_a_device_that_was_not_watched_there_has_no_tab_there(tmp_path):
    samples = [replace(s, stream=stream) for n, s in enumerate(FakeSource("veth").samples(900))
               for stream in (0, 1) if stream or n < 100]  # fmt: skip
    async with shown(written(tmp_path / "x.jsonl", samples)) as (app, replay, _):
        await until(lambda: len(app.feeds) == 2)
        assert app.stream == 0
        replay.seek_to(800)
        await until(lambda: replay.position == 800 and list(app.feeds) == [1])
        await at(app, replay, 800)
        assert app.stream == 1
        replay.seek_to(50)
        await until(lambda: replay.position == 50 and sorted(app.feeds) == [0, 1])


async def test_events_of_before_a_reboot_are_told(tmp_path):
    samples = list(FakeSource("veth").samples(200))
    booted = [replace(s, monotonic_ns=s.monotonic_ns - (samples[100].monotonic_ns - 1 if n >= 100 else 0))
              for n, s in enumerate(samples)]  # fmt: skip
    events = [(n, Event(samples[n].time_ns, "setting", name), None) for n, name in ((50, "A"), (120, "B"))]
    async with shown(written(tmp_path / "x.jsonl", booted, events)) as (app, replay, _):
        replay.seek_to(150)
        await at(app, replay, 150)
        assert [event.text for event in app.feed.events if event.kind == "setting"] == ["A", "B"]


async def test_where_events_are_found_a_jump_invents_none_and_loses_none(tmp_path):
    """The output of --json has no header, and no events but the device's own."""
    samples = list(FakeSource("veth").samples(300))
    grown = [replace(s, queues=tuple(replace(queue, limit=16 + n // 5, limit_max=10**6) for queue in s.queues))
             for n, s in enumerate(samples)]  # fmt: skip
    grown[150:] = [replace(s, queues=tuple(replace(queue, limit=400) for queue in s.queues)) for s in grown[150:]]
    path = written(tmp_path / "x.jsonl", grown)
    path.write_text("".join(path.read_text().splitlines(keepends=True)[1:]))
    async with shown(path) as (app, replay, _):
        def limits():
            return [event.text for event in app.feed.events if event.kind == "limit"]

        replay.seek_to(140)
        await at(app, replay, 140)
        assert limits() == []
        replay.step(20)
        await at(app, replay, 160)
        found = limits()
        assert len(found) == 1
        replay.seek_to(155)
        await at(app, replay, 155)
        assert limits() == found


async def test_an_epoch_of_a_file_is_no_jump(tmp_path):
    samples = [replace(s, epoch=(n % 2) * 10**6) for n, s in enumerate(FakeSource("veth").samples(60))]
    async with shown(written(tmp_path / "x.jsonl", samples)) as (app, replay, _):
        replay.speed = 100.0
        replay.resume()
        await until(lambda: app.feed.sample.time_ns == samples[-1].time_ns)
        assert app.tape._jumps == 0


async def test_the_end_is_shown_though_a_page_was_open_when_it_came(recording):
    async with shown(recording) as (app, replay, pilot):
        replay.seek_to(1150)
        await at(app, replay, 1150)
        replay.speed = 100.0
        await pilot.press("question_mark")
        replay.resume()
        await until(lambda: replay.at_end)
        await asyncio.sleep(0.3)
        await pilot.press("escape")
        await pilot.pause()
        assert "END" in text_of(app)
        assert "02:00/02:00" in text_of(app)


def test_places_on_a_tape():
    assert [_clock(s * 10**9) for s in (0, 187, 3753)] == ["00:00", "03:07", "1:02:33"]


async def test_events_are_listed_filtered_and_written(fed_app, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    app = fed_app("veth", 1)
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.pause()
        app.play(300)
        await pilot.press("e")
        await pilot.pause()
        text = text_of(app)
        assert "attached to veth0" in text
        assert "qdisc replaced" in text
        await pilot.press("slash", *"REPLACED")
        await pilot.pause()
        text = text_of(app)
        assert "attached to veth0" not in text
        assert "qdisc replaced" in text
        await pilot.press("enter", "w")
        assert "written to" in text_of(app)
        (file,) = tmp_path.glob("bqltop-events-*.txt")
        assert all("qdisc replaced" in line for line in file.read_text().splitlines())
        await pilot.press("slash", "escape", "home", "down", "pagedown", "up", "end")
        assert "attached" in text_of(app)
        for size in ((1, 1), (20, 5), (200, 50)):
            await pilot.resize_terminal(*size)
            await pilot.pause()
        await pilot.press("escape")
        assert app.screen is app.live


async def test_looking_at_the_next_and_the_last_event(fed_app):
    app = fed_app("veth", 1)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        app.play(300)
        await pilot.press("less_than_sign")
        assert "ago" in text_of(app)
        first = app.live.view.cursor_ns
        await pilot.press("less_than_sign")
        assert app.live.view.cursor_ns < first
        await pilot.press("greater_than_sign")
        assert app.live.view.cursor_ns >= first - 10**8
