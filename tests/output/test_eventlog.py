"""Events come from the samples alone: each kind once, with the right time, and none for ordinary traffic."""

import csv
import io
import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_up import START_NS, queue, sample, samples

from bqltop.eventlog import Detector, EventLog, Thresholds, export, line
from bqltop.model import Event, Probe, Unit


def detected(items, **options):
    detector = Detector(**options)
    return [event for item in items for event in detector.feed(item)]


def changed(changes, count=30, **base):
    """Samples of one queue; ``changes`` maps a tick to the queue's fields from then on."""
    items, fields = [], {"stopped_driver_ns": 0, "stopped_ns": 0, "stops_driver": 0, "drv_xoff": False, **base}
    for tick in range(count):
        for name, value in changes.get(tick, {}).items():
            fields[name] = value
        items.append(sample(tick, queues=(queue(0, tick, **fields),), qdiscs=()))
    return items


def texts(events, kind):
    return [event.text for event in events if event.kind == kind]


def test_ordinary_traffic_has_no_events():
    """Ten short stops in every 100 ms, dropping all the time."""
    found = detected(samples(100, queues=2))
    assert {event.kind for event in found} <= {"drops"}
    assert len(found) == 1


def stop(start, length, stops=1):
    """A stop of ``length`` ticks that begins half a tick before the sample ``start``."""
    changes = {start: {"drv_xoff": True, "stops_driver": stops, "stopped_driver_ns": 50_000_000}}
    for tick in range(start + 1, start + length + 1):
        changes[tick] = {"stopped_driver_ns": 50_000_000 + (tick - start) * 100_000_000}
    changes[start + length + 1] = {"drv_xoff": False}
    return changes


def test_a_long_stop_is_told_once_when_it_ends():
    found = detected(changed(stop(5, 2)))
    assert texts(found, "stop") == ["stopped by the driver for 250 ms"]
    assert found[0].time_ns == START_NS + 800_000_000
    assert found[0].queue == 0


def test_a_very_long_one_also_while_it_lasts():
    assert texts(detected(changed(stop(5, 15))), "stop") == [
        "stopped by the driver for 1.05 s and still is",
        "stopped by the driver for 1.55 s",
    ]


def test_a_short_stop_is_not_told():
    assert not texts(detected(changed(stop(5, 0))), "stop")
    assert texts(detected(changed(stop(5, 0)), thresholds=Thresholds(stop_ms=40)), "stop")


def test_many_short_stops_are_not_one_long_one():
    changes = {t: {"drv_xoff": True, "stops_driver": 20 * t, "stopped_driver_ns": 95_000_000 * t} for t in range(1, 30)}
    assert not texts(detected(changed(changes)), "stop")


def test_without_event_probes_the_bit_at_each_sample_has_to_do():
    changes = {5: {"drv_xoff": True}, 12: {"drv_xoff": False}}
    found = detected(changed(changes, stopped_driver_ns=None, stops_driver=None))
    assert texts(found, "stop") == ["stopped by the driver for 600 ms"]


def test_watchdog_names_the_queue():
    older, newer = sample(1, 3), sample(2, 3)
    newer = replace(newer, queues=(*newer.queues[:2], replace(newer.queues[2], tx_timeouts=2)))
    found = detected([older, newer])
    assert [(event.kind, event.queue) for event in found if event.kind == "watchdog"] == [("watchdog", 2)]
    assert texts(found, "watchdog") == ["transmit watchdog fired 2 times (2 in all)"]


@pytest.mark.parametrize(
    ("unit", "before", "after", "told"),
    [
        (Unit.PACKETS, 16, 128, True), (Unit.PACKETS, 128, 16, True), (Unit.PACKETS, 2, 8, False),
        (Unit.PACKETS, 100, 150, False), (Unit.BYTES, 1514, 3028, False), (Unit.BYTES, 1514, 60_000, True),
        (Unit.PACKETS, 0, 30, True), (Unit.PACKETS, None, 30, False),
    ],
)  # fmt: skip
def test_limit_jumps(unit, before, after, told):
    found = detected(changed({5: {"limit": after}}, limit=before, unit=unit))
    assert len(texts(found, "limit")) == told


def test_drops_are_two_events_a_burst():
    items, total = [], 0
    for tick in range(40):
        total += 500 if 10 <= tick < 15 else 0
        items.append(sample(tick, qdiscs=(replace(sample(0).qdiscs[0], drops=total),)))
    assert texts(detected(items), "drops") == [
        "pfifo 8002: drops 5000 packets/s",
        "pfifo 8002: dropped 2500 packets in 400 ms",
    ]


def test_a_stall_begins_and_ends():
    changes = {10: {"completed": 900, "packets": 918, "queued": 918}, 20: {"completed": 1900, "packets": 2918}}
    items = changed(changes, ring_used=None, completed=100, packets=100)
    assert texts(detected(items), "stall") == [
        "nothing completed for 500 ms, 18 waiting",
        "completions go on after 900 ms",
        "nothing completed for 500 ms, 18 waiting",
        "completions go on after 900 ms",
        "nothing completed for 500 ms, 18 waiting",
    ]


def test_a_full_ring_that_drains_is_no_stall():
    assert not texts(detected(samples(50)), "stall")


def test_the_kernels_own_stall_count():
    found = detected(changed({5: {"stall_count": 2, "stall_max_ms": 80}}, stall_count=0, stall_max_ms=0))
    assert texts(found, "stall") == ["the kernel counted 2 stalls, the longest 80 ms"]


def test_somebody_elses_settings_and_ours():
    items = changed({10: {"limit_min": 8}, 20: {"limit_min": 16}})
    assert texts(detected(items), "setting") == ["somebody set limit_min 0 -> 8", "somebody set limit_min 8 -> 16"]
    assert not detected(items, settings=False)
    detector, found = Detector(), []
    for tick, item in enumerate(items):
        if tick == 9:
            detector.ours("limit_min", 0)
        found += detector.feed(item)
    assert texts(found, "setting") == ["somebody set limit_min 8 -> 16"]
    off = [sample(0), replace(sample(1), device=replace(sample(1).device, napi_mode=False))]
    assert texts(detected(off), "setting") == ["somebody set napi_mode True -> False"]


def test_probes_lost_and_back():
    off = replace(sample(1), probes=(Probe("bpf", False, "permission denied"),))
    assert texts(detected([sample(0), off, sample(2)]), "probe") == [
        "bpf lost: permission denied",
        "bpf is back: wake-ups seen at the next transmit",
    ]


def test_missed_samples_are_added_up():
    items = [replace(item, own=replace(item.own, missed=tick)) for tick, item in enumerate(samples(250))]
    assert texts(detected(items), "missed") == ["1 sample missed", "100 samples missed", "100 samples missed"]


def test_a_fresh_start_forgets_what_was_going_on():
    items = changed(stop(5, 20))
    items = [item if tick < 10 else replace(item, epoch=1) for tick, item in enumerate(items)]
    assert texts(detected(items), "stop") == ["stopped by the driver for 1 s and still is", "stopped by the driver for 1.5 s"]


def test_events_of_the_sample_come_through():
    event = Event(START_NS, "device", "veth0 is gone")
    assert event in detected([sample(0), replace(sample(1), present=False, events=(event,))])


numbers = st.one_of(st.none(), st.integers(0, 1 << 64))
bits = st.one_of(st.none(), st.booleans())
odd_queues = st.builds(
    lambda **named: queue(0, 0, **named), drv_xoff=bits, stack_xoff=bits, limit=numbers, completed=numbers, packets=numbers,
    inflight=numbers, ring_used=numbers, stopped_driver_ns=numbers, stops_driver=numbers, tx_timeouts=numbers,
    stall_count=numbers, unit=st.sampled_from([None, *Unit]),
)  # fmt: skip


@given(st.lists(odd_queues, max_size=6))
def test_no_values_whatever_break_it(queues):
    detected([sample(tick, queues=(one,)) for tick, one in enumerate(queues)])


# ---- the log


def events(count=20):
    kinds = ("stop", "limit", "drops")
    return [Event(START_NS + n * 10**9, kinds[n % 3], f'number "{n}", \x1b[2J', (None, 0, 1)[n % 3]) for n in range(count)]


def test_the_same_event_is_kept_once_and_only_so_many():
    log = EventLog(most=5)
    assert log.add(events(8)) == events(8)
    assert log.add(events(8)) == []
    assert list(log) == events(8)[3:]
    assert log.total == 8
    assert len(log) == 5


def test_filters():
    log = EventLog()
    log.add(events())
    assert {event.kind for event in log.filter(kinds=["limit"])} == {"limit"}
    assert {event.queue for event in log.filter(queue=0)} == {None, 0}
    assert len(log.filter(text='NUMBER "1"')) == 1
    assert log.filter(start_ns=START_NS + 5 * 10**9, end_ns=START_NS + 6 * 10**9) == events()[5:7]
    assert log.filter(kinds=[]) == []


def test_exports():
    assert [json.loads(row)["kind"] for row in export(events(3), "json").splitlines()] == ["stop", "limit", "drops"]
    rows = list(csv.DictReader(io.StringIO(export(events(3), "csv"))))
    assert rows[1]["text"] == events(3)[1].text
    assert rows[1]["queue"] == "0"
    text = export(events(3))
    assert text.count("\n") == 3
    assert "\x1b" not in text
    assert "\x1b" not in line(events(1)[0])
    assert export([], "json") == ""
    with pytest.raises(ValueError, match="no such form"):
        export([], "xml")
