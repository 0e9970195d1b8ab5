"""The instants of sampling, by a clock of the test's own."""

import itertools

import pytest

from bqltop import pace


class Clock:
    """A monotonic clock that moves only when somebody waits or works."""

    def __init__(self):
        self.now = 100.0

    def monotonic(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(pace.time, "monotonic", clock.monotonic)
    return clock


def paced(clock, interval):
    found = pace.Pace(interval)

    def wait(seconds):
        clock.now += seconds
        return False

    found._woken.wait = wait
    return found


def test_instants_are_an_interval_apart_and_the_first_is_now(clock):
    found = []
    for _ in itertools.islice(paced(clock, 0.5).instants(lambda: None), 4):
        found.append(clock.now)
    assert found == pytest.approx([100.0, 100.5, 101.0, 101.5])


def test_the_pace_begins_when_the_work_of_the_first_instant_is_done(clock):
    found = []
    for _ in itertools.islice(paced(clock, 0.5).instants(lambda: None), 2):
        found.append(clock.now)
        clock.now += 2.0  # attaching takes a moment
    assert found == pytest.approx([100.0, 102.5])


def test_slow_work_makes_the_next_instant_late_and_does_not_shift_the_grid(clock):
    instants = paced(clock, 0.5).instants(lambda: None)
    next(instants)
    next(instants)  # 100.5
    clock.now += 0.7
    assert next(instants) == pytest.approx(0.2e9)  # planned for 101.0, taken at 101.2
    assert next(instants) == 0
    assert clock.now == pytest.approx(101.5)


def test_instants_that_cannot_be_kept_are_counted_not_made_up_for(clock):
    kept = paced(clock, 0.1)
    instants = kept.instants(lambda: None)
    next(instants)
    next(instants)
    clock.now += 1.05  # eleven instants passed, the last of them is still to be had
    next(instants)
    assert kept.missed == 9
    before = clock.now
    next(instants)
    assert clock.now - before == pytest.approx(0.05)


def test_no_instant_follows_right_behind_one_that_was_late(clock):
    kept = paced(clock, 0.2)
    wait, stops = kept._woken.wait, iter([0.0, 3.05, 0.0, 0.0, 0.0, 0.0, 0.19])

    def stopped_for_a_while(seconds):
        clock.now += next(stops, 0.0)  # Ctrl-Z, or a busy machine, in the middle of a wait
        return wait(seconds)

    kept._woken.wait = stopped_for_a_while
    found = []
    for _ in itertools.islice(kept.instants(lambda: None), 6):
        found.append(clock.now)
    assert min(b - a for a, b in itertools.pairwise(found)) >= 0.2 / 3 - 1e-9
    assert kept.missed in range(14, 18)


@pytest.mark.parametrize("late", [0.03, 0.08, 0.099])
def test_an_instant_overtaken_by_less_than_an_interval_is_made_up_for(clock, late):
    kept = paced(clock, 0.1)
    wait, stops = kept._woken.wait, iter([0.0, late])

    def delayed(seconds):
        clock.now += next(stops, 0.0)
        return wait(seconds)

    kept._woken.wait = delayed
    found = []
    for lateness in itertools.islice(kept.instants(lambda: None), 6):
        found.append((clock.now, lateness))
    # on the grid, then one too late, the next at a third of an interval behind it or on the grid, then on the grid again
    again = max(100.3, 100.2 + late + 0.1 / 3)
    assert [at for at, _ in found] == pytest.approx([100.0, 100.1, 100.2 + late, again, 100.4, 100.5])
    assert [lateness for _, lateness in found] == pytest.approx([0, 0, late * 1e9, (again - 100.3) * 1e9, 0, 0], abs=1)
    assert kept.missed == 0


def test_a_hurry_keeps_a_little_distance():
    kept = pace.Pace(30.0)
    instants = kept.instants(lambda: None)
    next(instants)
    started = pace.time.monotonic()
    for _ in range(3):
        kept.hurry()
        next(instants)
    assert 2.5 * pace.HURRIED_S < pace.time.monotonic() - started < 10


def test_a_long_wait_has_a_tick_at_least_every_tenth_of_a_second(clock):
    ticks = []
    instants = paced(clock, 1.0).instants(lambda: ticks.append(clock.now))
    next(instants)
    next(instants)
    assert len(ticks) >= 9
    assert max(b - a for a, b in itertools.pairwise([100.0, *ticks, 101.0])) <= 0.1 + 1e-9


def test_another_interval_takes_effect_with_the_next_instant(clock):
    kept = paced(clock, 1.0)
    instants = kept.instants(lambda: None)
    next(instants)
    next(instants)
    kept.interval = 0.2
    next(instants)
    assert clock.now == pytest.approx(101.2)


def test_stopping_ends_the_instants():
    kept = pace.Pace(10.0)
    instants = kept.instants(lambda: None)
    next(instants)
    kept.stop()
    assert list(instants) == []


def test_a_hurry_brings_the_next_instant_now_and_the_pace_begins_anew_with_it():
    kept = pace.Pace(30.0)
    instants = kept.instants(lambda: None)
    next(instants)
    kept.hurry()
    assert next(instants) == 0
    assert kept.missed == 0
