"""A replay is a source of samples with a tape deck's keys."""

import threading
import time
from dataclasses import replace

import pytest
from made_up import START_NS, sample, samples, with_event

from bqltop.recording import Recorder, Recording, Replay
from bqltop.recording.replay import JUMP_EPOCH
from bqltop.window import between


@pytest.fixture
def path(tmp_path):
    """50 samples, 100 ms apart, with events at 10 and 40."""
    path = tmp_path / "x.jsonl.gz"
    with Recorder(path) as recorder:
        for tick in range(50):
            recorder.sample(with_event(sample(tick)) if tick in (10, 40) else sample(tick))
    return path


def ticks(ready):
    return [round((one.time_ns - START_NS) / 1e8) for one in ready]


class Player:
    """Runs ``every`` in a thread and collects what comes."""

    def __init__(self, replay, interval=0.0):
        self.replay, self.seen = replay, []
        self.came = threading.Condition()
        self.thread = threading.Thread(target=self.work, args=(interval,), daemon=True)
        self.thread.start()

    def work(self, interval):
        for one in self.replay.every(interval):
            with self.came:
                self.seen.append(one)
                self.came.notify_all()

    def wait_for(self, tick):
        with self.came:
            assert self.came.wait_for(lambda: self.seen and ticks(self.seen)[-1] == tick, 5), ticks(self.seen)


@pytest.fixture
def playing(path):
    replay = Replay(path, hold=True)
    replay.pause()
    player = Player(replay)
    player.wait_for(0)
    yield player
    replay.close()
    player.thread.join(5)
    assert not player.thread.is_alive()


def test_as_fast_as_it_can_be_read(path):
    assert ticks(Replay(path, speed=None).every(0)) == list(range(50))


def test_an_interval_thins(path):
    shown = list(Replay(path, speed=None).every(1.0))
    assert ticks(shown) == [0, 10, 20, 30, 40, 49]
    assert between(shown[0], shown[1]).queues[0].packets_per_s == pytest.approx(10_000)


def test_events_of_skipped_samples_are_kept(path):
    shown = list(Replay(path, speed=None).every(1.5))
    assert sum(len(one.events) for one in shown) == 2


def test_time_passes_at_the_recorded_pace_and_faster(path):
    began = time.monotonic()
    replay = Replay(path, speed=10)
    shown = ticks(replay.every(0))
    took = time.monotonic() - began
    assert 0.4 < took < 3
    assert shown[0] == 0
    assert shown[-1] == 49
    assert 5 < len(shown) < 20


def test_speed_is_bounded(path):
    replay = Replay(path, speed=10_000)
    assert replay.speed == 100
    replay.speed = 0
    assert replay.speed == 0.1
    replay.close()


def test_pause_step_and_resume(playing):
    replay = playing.replay
    replay.step()
    playing.wait_for(1)
    replay.step(3)
    playing.wait_for(4)
    assert ticks(playing.seen) == [0, 1, 2, 3, 4]
    replay.speed = None
    replay.resume()
    playing.wait_for(49)
    assert replay.at_end


def test_a_jump_brings_a_window_but_none_across_it(playing):
    replay = playing.replay
    replay.seek(START_NS + 3_050_000_000)
    playing.wait_for(30)
    assert ticks(playing.seen) == [0, 29, 30]
    origin, before, target = playing.seen
    assert between(origin, before) is None
    assert between(before, target).seconds == pytest.approx(0.1)
    assert target.epoch == JUMP_EPOCH
    assert replay.paused


def test_back_by_a_step_and_by_seconds(playing):
    replay = playing.replay
    replay.seek_to(20)
    playing.wait_for(20)
    replay.step(-1)
    playing.wait_for(19)
    replay.seek_by(-1.0)
    playing.wait_for(9)
    replay.seek_by(-100)
    playing.wait_for(0)
    replay.seek_to(10_000)
    playing.wait_for(49)


def test_from_event_to_event(playing):
    replay = playing.replay
    assert replay.next_event()
    playing.wait_for(10)
    assert replay.next_event()
    playing.wait_for(40)
    assert not replay.next_event()
    assert replay.previous_event()
    playing.wait_for(10)
    assert not replay.previous_event()


def test_to_the_event_before_while_it_plays_on(playing):
    """Pressed again and again it goes further back, though the tape has played past the last one found."""
    replay = playing.replay
    replay.seek_to(41)
    playing.wait_for(41)
    replay.speed = 0.1
    replay.resume()
    assert replay.previous_event()
    replay.pause()
    with playing.came:
        assert playing.came.wait_for(lambda: 10 in ticks(playing.seen), 5), ticks(playing.seen)
    assert ticks(playing.seen)[-1] < 40


def test_a_clock_that_was_set_back_changes_neither_pace_nor_jumps(tmp_path):
    path = tmp_path / "back.jsonl.gz"
    with Recorder(path) as recorder:
        for tick in range(50):
            recorder.sample(replace(sample(tick), time_ns=sample(tick).time_ns - (3600 * 10**9 if tick >= 20 else 0)))
    replay = Replay(path, hold=True)
    assert replay.interval == 0.1
    replay.pause()
    player = Player(replay)
    player.wait_for(0)
    replay.seek_by(2.5)
    player.wait_for(25 - 36_000)
    assert ticks(replay.samples(replay.since(1.0, 25), 25)) == [*range(15, 20), *range(20 - 36_000, 25 - 36_000)]
    replay.seek_by(-1)
    player.wait_for(15)
    assert replay._wait_for(25) == pytest.approx(1.0, abs=0.2)
    replay.close()


def test_a_jump_is_of_one_moment_at_least(tmp_path):
    path = tmp_path / "sparse.jsonl.gz"
    with Recorder(path) as recorder:
        for tick in range(0, 500, 50):
            recorder.sample(sample(tick))
    replay = Replay(path, hold=True)
    replay.pause()
    player = Player(replay)
    player.wait_for(0)
    replay.seek_by(1)
    player.wait_for(50)
    replay.seek_by(-1)
    player.wait_for(0)
    replay.close()


def test_the_events_before_a_place(playing):
    replay = playing.replay

    def told(moment, *most):
        return [round((event.time_ns - START_NS) / 1e8) for stream, event in replay.events_before(moment, *most) if stream == 0]

    assert told(30) == [10]
    assert told(45) == [10, 40]
    assert told(45, 1) == [40]
    assert told(40) == [10], "what happens at a moment is not before it"


def test_what_came_before_for_the_charts(playing):
    replay = playing.replay
    replay.seek_to(30)
    playing.wait_for(30)
    assert replay.landed == 29
    assert replay.since(1.0, 30) == 20
    before = replay.samples(20, 30)
    assert ticks(before) == list(range(20, 30))
    assert {one.epoch for one in before} == {JUMP_EPOCH}
    assert len(replay.samples(0, 30, most=10)) == 10


def test_a_held_end_begins_again_on_resume(playing):
    replay = playing.replay
    replay.seek_to(49)
    playing.wait_for(49)
    replay.resume()
    playing.wait_for(0)


def test_a_loop_goes_round(path):
    replay = Replay(path, speed=None, loop=True)
    seen = []
    for one in replay.every(0):
        seen.append(one)
        if len(seen) == 120:
            replay.close()
    assert ticks(seen) == [*range(50), *range(50), *range(20)]
    assert between(seen[49], seen[50]) is None


def test_a_sample_that_cannot_be_decoded_ends_it_with_a_notice(tmp_path):
    path = tmp_path / "x.jsonl"
    with Recorder(path) as recorder:
        for one in samples(3):
            recorder.sample(one)
    path.write_bytes(path.read_bytes().replace(b'"queued":2018', b'"queued":"?"'))
    replay = Replay(path, speed=None)
    assert ticks(replay.every(0)) == [0, 1]
    assert replay.notice == f"{path}: sample 3: sample.queues.queued is not a 64-bit whole number"


def test_what_is_in_it(path):
    replay = Replay(path)
    assert replay.device.name == "veth0"
    assert replay.header["schema"] == 1
    assert replay.span == (START_NS, START_NS + 4_900_000_000)
    assert len(replay.recording) == 50
    replay.close()
    with Recording(path) as again:
        assert again.notice is None


def test_several_devices_come_together(tmp_path):
    path = tmp_path / "x.gz"
    with Recorder(path) as recorder:
        for tick in range(20):
            recorder.sample(sample(tick))
            recorder.sample(replace(with_event(sample(tick)) if tick == 7 else sample(tick), stream=1))
    replay = Replay(path, speed=None, hold=True)
    replay.pause()
    player = Player(replay)
    player.wait_for(0)
    assert replay.next_event()
    player.wait_for(7)
    assert [(tick, one.stream) for tick, one in zip(ticks(player.seen), player.seen, strict=True)][2:] == [
        (6, 0), (6, 1), (7, 0), (7, 1),
    ]  # fmt: skip
    replay.close()
    thinned = list(Replay(path, speed=None).every(0.5))
    assert [one.stream for one in thinned] == [0, 1] * (len(thinned) // 2)
    assert [len(one.events) for one in thinned if one.events] == [1]
