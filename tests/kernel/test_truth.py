"""What bqltop counts against what the kernel counts by itself, on real devices."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from looking import (
    ethtool_counters,
    ip_counters,
    read_queue_file,
    send_udp,
    tc_qdiscs,
    wait_until,
    window_over,
    write_queue_file,
)

from bqltop.lab import End
from bqltop.model import Sample, Unit
from bqltop.sampler import Sampler
from bqltop.window import between

pytestmark = pytest.mark.usefixtures("require_root")

RING = 256
"""VETH_RING_SIZE, drivers/net/veth.c."""


@pytest.fixture
def watched(lab, factory):
    """`watched(rules=0, ...)`: a lab and a sampler on its sender."""

    def make(**words):
        built = lab(**words)
        return built, factory.enter(lambda: Sampler(built.sender.device, built.sender.netns))

    return make


def at_rest(sampler: Sampler) -> Sample:
    """A sample after a flood, when the ring is empty and the last poll over. In NAPI mode veth counts a sender's
    tx_packets where they are received, so `Lab.settle` cannot tell what the ring still holds."""
    looks: list[Sample] = []

    def quiet() -> bool:
        looks.append(sampler.sample())
        empty = not any(queue.ring_used for queue in looks[-1].queues)
        return empty and len(looks) > 5 and all(look.napis == looks[-1].napis for look in looks[-5:])

    assert wait_until(quiet)
    return looks[-1]


@pytest.mark.parametrize(
    "words",
    [{}, {"rules": 0}, {"queues": 4}, {"queues": 4, "qdisc": "mq"}, {"flooders": 2}, {"threaded": False}, {"napi_mode": False}],
    ids=lambda words: " ".join(f"{name}={value}" for name, value in words.items()) or "default",
)
def test_packets_counted_are_exactly_those_of_the_device(watched, words):
    built, sampler = watched(**words)
    before, device_before = sampler.sample(), ip_counters(built.sender, "tx")["packets"]
    built.flood(0.7)
    after, device_after = at_rest(sampler), ip_counters(built.sender, "tx")["packets"]
    counted = sum(queue.packets for queue in after.queues) - sum(queue.packets for queue in before.queues)
    assert counted == device_after - device_before
    assert counted > 100
    assert after.own.strays == 0


def assert_busy_is_requeues(busy: int, requeues: int) -> None:
    """A requeue is a busy answer of the driver, but for a queue that was stopped between the qdisc's look at it and its
    transmit: then the packet goes back without the driver being asked (sch_direct_xmit, net/sched/sch_generic.c)."""
    assert busy <= requeues <= busy + 2 + busy // 100


def test_busy_answers_are_the_requeues_of_the_qdisc(watched):
    built, sampler = watched()
    sampler.sample()
    built.flood(1.0)
    (queue,) = at_rest(sampler).queues
    assert queue.busy == tc_qdiscs(built.sender)[0]["requeues"]
    assert queue.busy > 10


def test_each_queue_under_mq_has_its_own_packets_and_requeues(watched):
    built, sampler = watched(queues=4, qdisc="mq")
    sampler.sample()
    built.flood(1.0)
    after = at_rest(sampler)
    children = {int(qdisc["parent"].split(":")[1], 16) - 1: qdisc for qdisc in tc_qdiscs(built.sender) if "parent" in qdisc}
    assert sorted(children) == [0, 1, 2, 3]
    for queue in after.queues:
        assert queue.packets == children[queue.index]["packets"] > 0
        assert_busy_is_requeues(queue.busy, children[queue.index]["requeues"])


@pytest.mark.parametrize("queues", [1, 4])
def test_work_of_the_peers_polls_is_what_went_through_its_ring(watched, queues):
    built, sampler = watched(queues=queues)
    sampler.sample()
    built.flood(1.0)
    napis = {napi.index: napi for napi in at_rest(sampler).napis if napi.role == "peer"}
    received = ethtool_counters(built.receiver)
    assert len(napis) == queues
    for index, napi in napis.items():
        assert napi.work == received[f"rx_queue_{index}_xdp_packets"]
        assert napi.work == sum(work * polls for work, polls in enumerate(napi.work_histogram))
        assert napi.polls == sum(napi.work_histogram)
        assert napi.full_polls == napi.work_histogram[64]
    assert sum(napi.work for napi in napis.values()) == ip_counters(built.receiver, "rx")["packets"]


def test_past_the_ring_there_is_no_ring_and_no_stop(watched):
    built, sampler = watched(napi_mode=False)
    sampler.sample()
    built.flood(0.5)
    sample = sampler.sample()
    (queue,) = sample.queues
    assert (queue.ring_size, queue.ring_used) == (None, None)
    assert (queue.stopped_ns, queue.stops_driver, queue.busy) == (0, 0, 0)
    assert [napi for napi in sample.napis if napi.role == "peer"] == []
    assert sample.device.napi_mode is False


def test_a_full_ring_stops_the_queue_most_of_the_time_and_never_longer_than_the_clock_runs(watched):
    built, sampler = watched(rules=10000)
    sampler.sample()
    built.start_flood()
    assert wait_until(lambda: sampler.sample().queues[0].drv_xoff)
    older = sampler.sample()
    looks = []
    for _ in range(40):
        time.sleep(0.025)
        looks.append(sampler.sample())
    newer = looks[-1]
    wall = newer.monotonic_ns - older.monotonic_ns
    stopped = newer.queues[0].stopped_ns - older.queues[0].stopped_ns
    by_driver = newer.queues[0].stopped_driver_ns - older.queues[0].stopped_driver_ns
    assert 0.5 * wall < stopped <= wall
    # Added up apart from each other: two CPUs that look at once may divide a moment differently.
    assert by_driver == pytest.approx(stopped, abs=10_000)
    assert newer.queues[0].stopped_bql_ns == 0
    # Full, or with room for the packets of one poll: the queue is woken when half of the ring is free.
    assert all(look.queues[0].ring_size == RING and look.queues[0].ring_used <= RING for look in looks)
    full_enough = sum(look.queues[0].ring_used > RING // 2 for look in looks)
    assert full_enough > len(looks) // 2
    seen_stopped = sum(look.queues[0].drv_xoff for look in looks) / len(looks)
    assert seen_stopped > 0.5
    built.stop_flood()
    built.settle()
    (queue,) = at_rest(sampler).queues
    assert (queue.drv_xoff, queue.ring_used) == (False, 0)


def test_an_idle_queue_adds_no_time_stopped(watched):
    built, sampler = watched()
    sampler.sample()
    built.flood(0.3)
    at_rest(sampler)
    window = window_over(sampler, 0.2)
    (queue,) = window.queues
    assert (queue.stopped_share, queue.packets_per_s, queue.dark_buffer_s) == (0.0, 0.0, 0.0)


def test_one_packet_is_one_packet(watched):
    built, sampler = watched(rules=0)
    before = sampler.sample()
    for sent in range(1, 4):
        send_udp(built.sender, 1)
        assert wait_until(lambda: ip_counters(built.receiver, "rx")["packets"] == sent)  # noqa: B023
        sample = sampler.sample()
        assert sample.queues[0].packets - before.queues[0].packets == sent
        assert sum(napi.work for napi in sample.napis) == sent


def test_rates_of_a_window_are_the_differences_over_its_seconds(watched):
    built, sampler = watched()
    sampler.sample()
    built.start_flood()
    assert wait_until(lambda: sampler.sample().napis)
    older = sampler.sample()
    time.sleep(0.5)
    newer = sampler.sample()
    built.stop_flood()
    window = between(older, newer)
    packets = newer.queues[0].packets - older.queues[0].packets
    assert window.queues[0].packets_per_s == pytest.approx(packets / window.seconds)
    assert window.napis[0].work_per_s * window.seconds == pytest.approx(newer.napis[0].work - older.napis[0].work)
    # One packet in seconds at 1 / rate each: the ring empties in used / rate.
    drained = window.queues[0].drained_per_s
    assert window.queues[0].dark_buffer_s == pytest.approx(newer.queues[0].ring_used / drained)


def test_without_bql_its_figures_are_null_not_zero(watched):
    built, sampler = watched()
    sampler.sample()
    built.flood(0.3)
    (queue,) = sampler.sample().queues
    names = ("unit", "limit", "limit_min", "limit_max", "hold_time_ms", "inflight", "queued", "completed", "inflight_histogram")
    assert {name: getattr(queue, name) for name in names} == dict.fromkeys(names)


BQL_SETTINGS = [
    {"limit_min": 3000, "limit_max": 900_000, "hold_time": 500},
    {"limit_min": 0, "limit_max": 1_879_048_192, "hold_time": 1000},
    {"limit_min": 70_000, "limit_max": 60_000, "hold_time": 20},
]


def assert_bql_equals_sysfs(end: End, queue, index: int) -> None:
    folder = "byte_queue_limits/"
    files = {
        "limit": queue.limit,
        "limit_min": queue.limit_min,
        "limit_max": queue.limit_max,
        "hold_time": queue.hold_time_ms,
        "inflight": queue.inflight,
        "stall_thrs": queue.stall_threshold_ms,
        "stall_cnt": queue.stall_count,
    }
    assert {name: read_queue_file(end, index, folder + name) for name in files} == files


@pytest.mark.parametrize("settings", BQL_SETTINGS, ids=str)
def test_bql_settings_read_from_memory_equal_sysfs(ifb, settings):
    end = ifb(queues=2)
    for name, value in settings.items():
        write_queue_file(end, 1, f"byte_queue_limits/{name}", value)
    with Sampler(end.device, end.netns) as sampler:
        queues = sampler.sample().queues
        assert [probe.in_force for probe in sampler.sample().probes if probe.name == "snapshot"] == [True]
        for queue in queues:
            assert_bql_equals_sysfs(end, queue, queue.index)
        assert (queues[1].limit_min, queues[1].limit_max) == (settings["limit_min"], settings["limit_max"])
        assert queues[1].hold_time_ms == settings["hold_time"]
        assert queues[0].unit is Unit.BYTES


def test_a_setting_changed_while_watching_is_in_the_next_sample(ifb):
    end = ifb()
    with Sampler(end.device, end.netns) as sampler:
        sampler.sample()
        write_queue_file(end, 0, "byte_queue_limits/limit_min", 4321)
        assert sampler.sample().queues[0].limit_min == 4321


def cards_with_bql() -> list[str]:
    """Network cards of this machine (they have a device folder) that show BQL files. Only ever read."""
    cards = [path.parent for path in Path("/sys/class/net").glob("*/device")]
    return sorted(card.name for card in cards if (card / "queues/tx-0/byte_queue_limits").exists())


def test_a_real_card_has_the_limits_that_sysfs_shows():
    cards = cards_with_bql()
    if not cards:
        pytest.skip("no network card with BQL in this machine")
    folder = Path("/sys/class/net", cards[0], "queues/tx-0")
    names = ("limit", "limit_min", "limit_max", "hold_time", "inflight")

    def by_sysfs() -> list[int]:
        return [int((folder / "byte_queue_limits" / name).read_text()) for name in names]

    with Sampler(cards[0]) as sampler:

        def agree_while_quiet() -> bool:
            """One look between two of sysfs, none of which saw a packet under way or the limit move."""
            before, queue, after = by_sysfs(), sampler.sample().queues[0], by_sysfs()
            if before != after or before[-1]:
                return False
            seen = [queue.limit, queue.limit_min, queue.limit_max, queue.hold_time_ms, queue.inflight]
            assert seen == before
            assert queue.tx_timeouts == int((folder / "tx_timeout").read_text())
            return True

        assert wait_until(agree_while_quiet, 20), f"{cards[0]} is never quiet"


def test_watchdog_alarms_equal_sysfs(veth_pair, factory):
    pair = veth_pair(queues=3)
    sampler = factory.enter(lambda: Sampler(pair.sender.device, pair.sender.netns))
    by_sysfs = [read_queue_file(pair.sender, queue, "tx_timeout") for queue in range(3)]
    assert [queue.tx_timeouts for queue in sampler.sample().queues] == by_sysfs


def test_the_ring_of_a_tun_holds_what_was_sent_and_not_read(tun, factory):
    end = tun()
    sampler = factory.enter(lambda: Sampler(end.device, end.netns))

    def ring() -> tuple[int, int]:
        (queue,) = sampler.sample().queues
        return queue.ring_size, queue.ring_used

    assert ring() == (500, 0)  # its txqueuelen
    send_udp(end, 7)
    assert ring() == (500, 7)
    for _ in range(3):
        os.read(end.fds[0], 2000)
    assert ring() == (500, 4)
    send_udp(end, 600)
    size, used = ring()
    # A ptr_ring takes its slots back in batches of 16: after three reads up to 15 slots may not be free yet.
    assert size - 16 < used <= size
    assert used == 4 + 600 - ip_counters(end, "tx")["dropped"]
    for _ in range(used - 1):
        os.read(end.fds[0], 2000)
    assert ring() == (500, 1)
