"""Counters that wrap, reads that are torn, jiffies: what becomes of the kernel's numbers in a sample."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bqltop.counting import RESET, DqlCounters, QueueCounter, Wrapping, inflight
from bqltop.kernel.engine import QueueReading, StateBits
from bqltop.model import Unit

WRAP = 1 << 32
BITS = StateBits(drv_xoff=1, stack_xoff=2, frozen=4)
words = st.integers(0, WRAP - 1)
below_a_wrap = st.integers(0, WRAP - 1)


def reading(**changes) -> QueueReading:
    """A queue of which everything is 0, but for ``changes``."""
    zeros = {name: 0 for name in QueueReading._fields if name not in QueueReading._field_defaults}
    zeros |= dict.fromkeys(("inflight_histogram", "completion_size_histogram", "completion_interval_histogram"))
    return QueueReading(**zeros | changes)


def counter(unit: Unit | None = Unit.BYTES, ms_per_jiffy: float = 4.0) -> QueueCounter:
    return QueueCounter(0, unit, BITS, ms_per_jiffy)


@given(first=words, steps=st.lists(below_a_wrap, max_size=30))
def test_a_32_bit_counter_goes_on_through_any_number_of_wraps(first, steps):
    wrapping, truth = Wrapping(first), 0
    for step in steps:
        truth += step
        assert wrapping.look((first + truth) % WRAP) == truth


def test_the_count_begins_with_the_first_look():
    wrapping = Wrapping(WRAP - 10)
    assert wrapping.look(WRAP - 10) == 0
    assert wrapping.look(5) == 15
    assert wrapping.look(5) == 15
    assert wrapping.look(4) == 15 + WRAP - 1  # what went back can only have wrapped


@given(completed=words, outstanding=st.integers(0, WRAP // 2 - 1))
def test_inflight_is_right_wherever_the_counters_wrap(completed, outstanding):
    assert inflight((completed + outstanding) % WRAP, completed) == (outstanding, False)


@given(queued=words, ahead=st.integers(1, WRAP // 2))
def test_a_completion_ahead_of_its_packet_is_no_packet_and_a_torn_read(queued, ahead):
    assert inflight(queued, (queued + ahead) % WRAP) == (0, True)


@given(
    start=words,
    steps=st.lists(st.tuples(st.integers(0, WRAP - 1), st.integers(0, WRAP - 1)), max_size=20),
)
def test_samples_count_queued_and_completed_since_attach(start, steps):
    watched, queued, completed = counter(), 0, 0
    for more_queued, more_completed in [(0, 0), *steps]:
        queued, completed = queued + more_queued, completed + more_completed
        sample = watched.sample(
            reading(
                num_queued=(start + queued) % WRAP, num_completed=(start + completed) % WRAP, packets=queued // 65536
            )
        )
        assert (sample.queued, sample.completed) == (queued, completed)


def test_a_look_between_two_samples_keeps_a_wrap_from_being_missed():
    watched = counter()
    watched.sample(reading(num_queued=0))
    watched.look(3_000_000_000, 0, 2_000_000)
    watched.look(1_705_032_704, 0, 4_000_000)  # 6e9 mod 2^32
    assert watched.sample(reading(num_queued=1_705_032_704, packets=4_000_000)).queued == 6_000_000_000


@given(before=st.integers(0, WRAP - RESET - 2_000_000), after=st.integers(0, 1_000_000))
def test_a_dql_that_was_reset_has_sent_what_came_after_and_not_four_gigabytes(before, after):
    watched = DqlCounters(before, before, packets=7)
    watched.look(before + 1_000_000, before + 1_000_000, packets=17)
    watched.look(after, after // 2, packets=20)
    fell = after < before + 1_000_000 and after // 2 < before + 1_000_000
    assert not fell or (watched.queued, watched.completed) == (1_000_000 + after, 1_000_000 + after // 2)
    watched.look(after + 5, after + 5, packets=21)
    assert not fell or (watched.queued, watched.completed) == (1_000_005 + after, 1_000_005 + after)


def test_at_400_gigabits_a_wrap_is_no_reset_even_when_a_look_came_a_second_late():
    watched = DqlCounters(4_200_000_000, 4_200_000_000, packets=0)
    sent = 4_000_000_000
    watched.look((4_200_000_000 + sent) % WRAP, (4_200_000_000 + sent - 9_000) % WRAP, packets=sent // 65_226)
    assert (watched.queued, watched.completed) == (sent, sent - 9_000)


def test_a_wrap_by_packets_that_no_tracepoint_saw_is_no_reset():
    watched = DqlCounters(WRAP - 1_000_000, WRAP - 1_100_000, packets=0)
    watched.look(100_000_000, 99_000_000, packets=0)  # pktgen: 101 MB in 0.1 s
    assert (watched.queued, watched.completed) == (101_000_000, 100_100_000)


def test_torn_reads_are_counted_here_and_in_the_kernel_together():
    watched = counter()
    assert watched.sample(reading(num_queued=5, num_completed=5, torn=3)).torn_reads == 3
    sample = watched.sample(reading(num_queued=5, num_completed=6, torn=4))
    assert (sample.torn_reads, sample.inflight) == (5, 0)


def test_each_state_bit_has_its_own_lamp():
    seen = {
        state: (sample.drv_xoff, sample.stack_xoff, sample.frozen, sample.stopped)
        for state in (0, 1, 2, 4, 7, 8)
        for sample in [counter().sample(reading(state=state))]
    }
    assert seen == {
        0: (False, False, False, False),
        1: (True, False, False, True),
        2: (False, True, False, True),
        4: (False, False, True, True),
        7: (True, True, True, True),
        8: (False, False, False, False),
    }


def test_other_bit_numbers_are_taken_as_the_kernel_says_them():
    watched = QueueCounter(0, None, StateBits(drv_xoff=1 << 5, stack_xoff=1 << 6, frozen=1), 4.0)
    sample = watched.sample(reading(state=1 << 6))
    assert (sample.drv_xoff, sample.stack_xoff, sample.frozen) == (False, True, False)


def test_jiffies_become_milliseconds_and_a_figure_the_kernel_lacks_stays_away():
    sample = counter(ms_per_jiffy=4.0).sample(
        reading(hold_time=250, stall_threshold=None, stall_max=8, stall_count=None)
    )
    assert (sample.hold_time_ms, sample.stall_threshold_ms, sample.stall_max_ms, sample.stall_count) == (1000, None, 32, None)


def test_without_bql_an_unused_dql_shows_as_nothing():
    sample = counter(unit=None).sample(reading(limit=0, limit_max=1_879_048_192, hold_time=250, num_queued=9))
    names = ("unit", "limit", "limit_min", "limit_max", "hold_time_ms", "inflight", "queued", "completed", "torn_reads")
    assert [getattr(sample, name) for name in names] == [None] * len(names)
    assert sample.drv_xoff is False


def test_a_queue_that_sends_without_ever_charging_has_no_bql_whatever_sysfs_shows():
    watched = counter()
    assert watched.sample(reading()).limit == 0  # nothing sent yet: what sysfs says stands
    assert watched.sample(reading(packets=1)).limit is None
    assert watched.sample(reading(packets=2, num_queued=2)).limit == 0
    assert watched.sample(reading(packets=2, num_queued=0)).queued is not None  # wrapped to 0: it was charged before
