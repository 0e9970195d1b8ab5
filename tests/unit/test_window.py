"""What happened between two samples, in numbers made up here."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bqltop import histogram
from bqltop.model import (
    CpuSample,
    Device,
    LinkStats,
    NapiSample,
    QdiscSample,
    QueueSample,
    Sample,
    SelfSample,
    Unit,
)
from bqltop.window import between, napi_names, queue_window

SECOND = 1_000_000_000


def sample(at_s: float, **words) -> Sample:
    at_ns = round(at_s * SECOND)
    return Sample(at_ns, at_ns, Device("veth0", 2), **words)


def cells(**counts: int) -> tuple[int, ...]:
    """``cells(v4=3)``: three values of 4."""
    made = [0] * histogram.LOG_LINEAR_CELLS
    for name, count in counts.items():
        made[histogram.log_linear_cell(int(name[1:]))] += count
    return tuple(made)


def test_counters_become_rates_by_the_monotonic_clock():
    older = sample(10, queues=(QueueSample(0, packets=100, busy=1, stops_driver=0),))
    newer = replace(
        sample(12, queues=(QueueSample(0, packets=500, busy=5, stops_driver=3),)),
        time_ns=0,  # somebody set the clock back
    )
    window = between(older, newer)
    assert window.seconds == 2
    queue = window.queues[0]
    assert (queue.packets_per_s, queue.busy_per_s, queue.stops_driver_per_s) == (200, 2, 1.5)


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        (None, sample(1)),
        (sample(1, epoch=0), sample(2, epoch=1)),
        (sample(1, present=False), sample(2)),
        (sample(1), sample(2, present=False)),
        (sample(2), sample(2)),
        (sample(3), sample(2)),
    ],
    ids=["first", "another attachment", "was away", "is away", "no time", "time went back"],
)
def test_samples_that_must_not_be_compared_have_no_window(older, newer):
    assert between(older, newer) is None


def test_what_is_not_to_be_had_has_no_rate():
    older = sample(1, queues=(QueueSample(0),))
    window = between(older, sample(2, queues=(QueueSample(0),)))
    queue = window.queues[0]
    assert queue == queue_window(None, QueueSample(0), 1.0)
    assert (queue.packets_per_s, queue.stopped_share, queue.dark_buffer_s, queue.inflight_p99) == (None, None, None, None)
    assert (window.link, window.own_cpu_share, window.softirq_share) == (None, None, None)


def test_a_queue_that_was_not_there_before_has_no_rates():
    window = between(sample(1), sample(2, queues=(QueueSample(3, packets=7, unit=Unit.BYTES),)))
    assert (window.queues[0].index, window.queues[0].packets_per_s) == (3, None)


def test_a_counter_that_went_back_has_no_rate_rather_than_a_negative_one():
    older, newer = QueueSample(0, packets=10, tx_timeouts=5), QueueSample(0, packets=4, tx_timeouts=0)
    window = queue_window(older, newer, 1.0)
    assert (window.packets_per_s, window.tx_timeouts) == (None, None)


@given(st.integers(0, 3 * SECOND), st.floats(0.01, 10))
def test_a_share_of_time_is_from_0_to_1(stopped_ns, seconds):
    window = queue_window(QueueSample(0, stopped_ns=0), QueueSample(0, stopped_ns=stopped_ns), seconds)
    assert window.stopped_share == pytest.approx(min(1.0, stopped_ns / SECOND / seconds))
    assert 0 <= window.stopped_share <= 1


def test_what_leaves_a_ring_is_what_went_in_less_what_it_grew_by():
    older = QueueSample(0, packets=0, ring_size=256, ring_used=56)
    newer = QueueSample(0, packets=1000, ring_size=256, ring_used=256)
    window = queue_window(older, newer, 2.0)
    assert window.drained_per_s == 400
    assert window.completed_per_s == 400  # without BQL, in packets
    assert window.dark_buffer_s == 256 / 400


def test_an_empty_ring_delays_nobody_and_a_full_one_that_does_not_move_has_no_delay_to_tell():
    def dark(used: int, packets: int) -> float | None:
        older = QueueSample(0, packets=0, ring_size=256, ring_used=used)
        return queue_window(older, replace(older, packets=packets), 1.0).dark_buffer_s

    assert dark(used=0, packets=0) == 0.0
    assert dark(used=256, packets=0) is None
    assert dark(used=128, packets=128) == 1.0
    assert queue_window(QueueSample(0, packets=0), QueueSample(0, packets=5), 1.0).dark_buffer_s is None


def test_completions_of_a_driver_that_counts_bytes_are_not_packets():
    older = QueueSample(0, unit=Unit.BYTES, completed=0, packets=0)
    window = queue_window(older, replace(older, completed=3000, packets=2), 1.0)
    assert (window.completed_per_s, window.drained_per_s) == (3000, None)
    in_packets = replace(older, unit=Unit.PACKETS)
    window = queue_window(in_packets, replace(in_packets, completed=3000, packets=3000), 1.0)
    assert (window.completed_per_s, window.drained_per_s) == (3000, 3000)


def test_inflight_is_of_the_transmits_in_the_window_only():
    before, after = cells(v3=1000), cells(v3=1000, v1=98, v2=2)
    window = queue_window(QueueSample(0, inflight_histogram=before), QueueSample(0, inflight_histogram=after), 1.0)
    assert (window.inflight_p50, window.inflight_p99) == (1, 2)
    assert window.inflight_mean == pytest.approx(1.02)


def qdisc(**words) -> QdiscSample:
    zeros = dict.fromkeys(("packets", "bytes", "drops", "requeues", "overlimits", "backlog_bytes", "backlog_packets"), 0)
    return QdiscSample(**{"kind": "pfifo", "handle": "8001:", "parent": "root"} | zeros | words)


def test_a_qdisc_that_was_replaced_starts_afresh():
    older = sample(1, qdiscs=(qdisc(packets=1000, drops=10),))
    same = between(older, sample(2, qdiscs=(qdisc(packets=1500, drops=10),))).qdiscs[0]
    assert (same.packets_per_s, same.drops_per_s) == (500, 0)
    another = between(older, sample(2, qdiscs=(qdisc(kind="sfq", handle="8002:", packets=5000),))).qdiscs[0]
    assert (another.kind, another.packets_per_s) == ("sfq", 0)


def test_children_of_an_automatic_mq_are_told_apart_by_their_parent():
    def children(first: int, second: int):
        return tuple(qdisc(handle="0:", parent=f":{i + 1}", packets=n) for i, n in enumerate((first, second)))

    window = between(sample(1, qdiscs=children(0, 0)), sample(2, qdiscs=children(10, 30)))
    assert [child.packets_per_s for child in window.qdiscs] == [10, 30]


def napi(polls: int, work: int, full: int, napi_id: int = 7, role: str = "peer") -> NapiSample:
    histogram_ = [0] * histogram.LINEAR_WORK_CELLS
    histogram_[64], histogram_[1] = full, polls - full
    return NapiSample("veth1", napi_id, polls, work, full, tuple(histogram_), role)


def test_napi_of_the_window():
    window = between(sample(1, napis=(napi(10, 100, 1),)), sample(3, napis=(napi(30, 1000, 11),))).napis[0]
    assert (window.polls_per_s, window.work_per_s, window.work_average, window.full_share) == (10, 450, 45, 0.5)
    assert (window.work_histogram[1], window.work_histogram[64]) == (10, 10)


def test_a_napi_that_did_not_poll_has_no_average():
    window = between(sample(1, napis=(napi(10, 100, 1),)), sample(2, napis=(napi(10, 100, 1),))).napis[0]
    assert (window.polls_per_s, window.work_average, window.full_share) == (0, None, None)


def test_the_same_napi_id_on_device_and_peer_are_two_instances():
    # Ids are unique in one kernel, but 0 stands for "none" on both ends.
    both = (napi(10, 100, 0, 0, "device"), napi(20, 200, 0, 0, "peer"))
    later = (napi(11, 101, 0, 0, "device"), napi(25, 205, 0, 0, "peer"))
    window = between(sample(1, napis=both), sample(2, napis=later))
    assert [(napi.role, napi.polls_per_s) for napi in window.napis] == [("device", 1), ("peer", 5)]


def test_instances_without_an_id_keep_their_own_counts():
    # netif_napi_add_tx(): virtio_net has one such instance per TX queue.
    older = sample(1, napis=tuple(napi(polls, 0, 0, 0, "device") for polls in (10, 20)))
    newer = sample(2, napis=tuple(napi(polls, 0, 0, 0, "device") for polls in (15, 27, 3)))
    assert [(napi.napi_id, napi.polls_per_s) for napi in between(older, newer).napis] == [(0, 5), (0, 7), (0, 3)]
    assert napi_names(newer.napis) == [("device", "0#1"), ("device", "0#2"), ("device", "0#3")]


def test_link_own_cost_and_softirq():
    def made(at: float, packets: int, cpu_s: float, softirq_s: float, total_s: float) -> Sample:
        return sample(
            at,
            link=LinkStats(packets, packets * 100, 0, 0, 0, 0, 0, 0),
            own=SelfSample(cpu_s, 0),
            cpus=(CpuSample(0, softirq_s, total_s, 0, 0), CpuSample(1, 0, total_s, 0, 0)),
        )

    window = between(made(1, 0, 1.0, 1, 10), made(3, 50, 1.1, 2, 12))
    assert (window.link.tx_packets_per_s, window.link.tx_bytes_per_s) == (25, 2500)
    assert window.own_cpu_share == pytest.approx(0.05)
    assert window.softirq_share == 0.25
    assert between(made(1, 0, 1, 1, 10), made(2, 0, 1, 1, 10)).softirq_share is None
