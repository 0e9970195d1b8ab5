"""The past: no spike is hidden, every instant can be looked at, and memory stays within what is stated."""

import math
from dataclasses import replace
from mmap import mmap

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_up import cells, everything, queue, sample, samples, with_event

from bqltop.charted import CHARTED, Charted
from bqltop.fields import get
from bqltop.history import BLOCK, CHUNK, History
from bqltop.packing import pack, unpack
from bqltop.window import between


def filled(items, **options):
    history = History(**options)
    for item in items:
        history.add(item)
    return history


def test_charted_figures_are_those_of_the_window():
    items = samples(12, queues=3)
    charted = Charted()
    for older, newer in zip([None, *items], items, strict=False):
        columns = charted.columns(newer)
        window = between(older, newer)
        for id, row in columns.items():
            if "p99" in id or "p50" in id or window is None:
                continue
            for place, value in enumerate(row):
                record = window.queues[place] if hasattr(window.queues[place], id) else newer.queues[place]
                if hasattr(record, id):
                    expected = getattr(record, id)
                    assert (math.isnan(value) and expected is None) or value == pytest.approx(expected), id
    assert columns["requeues_per_s"] == [pytest.approx(200)]
    assert columns["drops_per_s"] == [pytest.approx(310_000)]
    assert columns["work_average"] == [pytest.approx(62.5)]
    assert columns["inflight_p99"] == [17.5] * 3
    for id in CHARTED:
        assert any(get(scope, id) for scope in ("queue", "qdisc", "napi") if _has(scope, id)), id


def _has(scope, id):
    try:
        return bool(get(scope, id))
    except KeyError:
        return False


@pytest.mark.parametrize("count", [1, CHUNK - 1, CHUNK, BLOCK, BLOCK + 1, 3 * BLOCK + 5])
def test_every_sample_can_be_looked_at(count):
    items = samples(count, queues=2)
    history = filled(items)
    for number, item in enumerate(items):
        found, window = history.at(item.monotonic_ns + 1)
        assert found == item
        assert window == between(items[number - 1] if number else None, item)
    assert history.at(0) == (items[0], None)
    assert history.at(1 << 60)[0] == items[-1]
    assert len(history) == count


def test_nothing_yet():
    history = History()
    assert history.at(5) is None
    assert history.span is None
    assert history.series("limit", 0, 0, 10, 3) == [None] * 3
    assert history.highest("limit", 0, 0, 10) is None
    assert history.neighbour(5, 1) is None
    with pytest.raises(KeyError):
        history.series("no_such", 0, 0, 10, 3)


def spiky(count, spikes, queues=1):
    return [
        sample(t, queues=tuple(queue(i, t, limit=spikes.get(t, 16) if i == queues - 1 else 16) for i in range(queues)))
        for t in range(count)
    ]


@settings(max_examples=40, deadline=None)
@given(st.dictionaries(st.integers(0, 399), st.integers(17, 10_000), max_size=6), st.integers(1, 60), st.integers(1, 400))
def test_no_spike_is_hidden_thinned_or_not(spikes, columns, full):
    items = spiky(400, spikes)
    history = filled(items, full_samples=full)
    start, end = items[0].monotonic_ns, items[-1].monotonic_ns
    points = history.series("limit", 0, start, end, columns)
    assert max(point[1] for point in points if point) == max([16, *spikes.values()])
    assert min(point[0] for point in points if point) == 16
    assert points[-1][2] == items[-1].queues[0].limit
    assert history.highest("limit", None, start, end) == max([16, *spikes.values()])


def test_a_spike_is_in_its_own_column():
    items = spiky(200, {130: 999})
    history = filled(items)
    start = items[0].monotonic_ns
    points = history.series("limit", 0, start, start + 20_000_000_000, 20)
    assert [number for number, point in enumerate(points) if point and point[1] == 999] == [13]
    assert points[13] == (16, 999, 16)


def test_all_queues_together_and_the_device_itself():
    items = spiky(30, {12: 64}, queues=3)
    history = filled(items)
    span = items[0].monotonic_ns, items[-1].monotonic_ns, 1
    assert history.series("limit", None, *span)[0][1] == 64
    assert history.series("limit", 0, *span)[0][1] == 16
    assert history.series("limit", 9, *span) == [None]
    assert history.series("packets_per_s", None, *span)[0][2] == pytest.approx(30_000)
    assert history.series("backlog_packets", None, *span) == history.series("backlog_packets", 2, *span) == [(1000,) * 3]


def test_missing_values_leave_a_gap_and_do_not_spread():
    items = [replace(item, queues=(replace(item.queues[0], limit=None),)) if 5 <= n < 8 else item
             for n, item in enumerate(spiky(20, {}))]
    history = filled(items)
    start = items[0].monotonic_ns
    points = history.series("limit", 0, start, start + 2_000_000_000, 20)
    assert [point is None for point in points] == [5 <= n < 8 for n in range(20)]


def test_the_past_is_thinned_and_then_forgotten():
    items = samples(20 * BLOCK)
    history = filled(items, full_samples=4 * BLOCK, thin_blocks=3)
    assert 4 * BLOCK <= len(history) <= 5 * BLOCK
    thinned = history.full_since - 1
    found, window = history.at(thinned)
    assert found == items[15 * BLOCK - 1]
    assert window.seconds == pytest.approx(BLOCK / 10)
    assert history.span[0] == items[13 * BLOCK - 1].monotonic_ns
    assert history.at(0)[0] == items[13 * BLOCK - 1]


@pytest.mark.parametrize(("queues", "kind"), [(1, bytearray), (64, mmap)])
def test_a_full_block_lies_in_one_buffer_and_a_large_one_in_a_mapping(queues, kind):
    history = filled(busy(BLOCK + 1, queues))
    full, filling = history._blocks
    (buffer,) = {id(view.obj): view.obj for view in (*full.columns.values(), *full.chunks)}.values()
    assert isinstance(buffer, kind)
    assert len(buffer) + len(full.times) * 8 == full.memory
    assert filling.live


def test_a_change_of_queues_and_a_fresh_start_are_survived():
    items = [*samples(10), *(sample(t, 4) for t in range(10, 20)), sample(20, present=False), sample(21, epoch=1, queues=())]
    history = filled(items)
    assert [history.at(item.monotonic_ns)[0] for item in items] == items
    assert history.at(items[-1].monotonic_ns)[1] is None
    assert history.series("limit", 3, 0, 1 << 60, 1)[0] == (16, 16, 16)
    history.add(sample(3))
    assert len(history) == 1


def test_moving_a_cursor():
    items = samples(100)
    history = filled(items)
    assert history.neighbour(items[50].monotonic_ns, 1) == items[51].monotonic_ns
    assert history.neighbour(items[50].monotonic_ns, -50) == items[0].monotonic_ns
    assert history.neighbour(items[50].monotonic_ns, 500) == items[-1].monotonic_ns


def test_the_sample_that_shows_what_happened_at_a_moment():
    items = samples(100)
    history = filled(items)
    at = items[50].monotonic_ns
    assert history.first_after([at, at + 1, 0, 1 << 60]) == [at, items[51].monotonic_ns, items[0].monotonic_ns,
                                                             items[-1].monotonic_ns]  # fmt: skip
    assert filled([]).first_after([1, 2]) == []


counts = st.integers(0, (1 << 64) - 1)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(st.one_of(st.none(), st.lists(counts, min_size=160, max_size=160).map(tuple)), min_size=2, max_size=2),
                min_size=1, max_size=4))
def test_packing_keeps_any_counts_also_those_that_go_back(rows):
    items = [
        with_event(sample(t, queues=(queue(0, t, inflight_histogram=a, ring_sojourn_histogram=b, unit=None),), own=None))
        for t, (a, b) in enumerate(rows)
    ]
    assert unpack(pack(items)) == items


def test_packing_keeps_a_device_that_changes():
    other = replace(sample(1), device=replace(sample(1).device, peer=None, mtu=9000))
    items = [sample(0), other, sample(2), sample(3, 0, link=None)]
    assert unpack(pack(items)) == items


def busy(count, queues):
    """Every queue busy, every distribution of every queue growing in a dozen cells at each sample."""
    def grown(tick, index, low):
        return cells(**{f"c{low + n}": (tick + 1) * (7 + (n * index) % 5) + (tick * n) % 3 for n in range(12)})

    names = {"inflight_histogram": 8, "completion_size_histogram": 4, "completion_interval_histogram": 60,
             "qdisc_sojourn_histogram": 70, "ring_sojourn_histogram": 80}
    for t in range(count):
        yield sample(t, queues=tuple(
            queue(i, t, inflight=(t * (i + 3)) % 29, ring_used=(t * 37 + i) % 256,
                  **{name: grown(t, i, low) for name, low in names.items()})
            for i in range(queues)))


@pytest.mark.parametrize(("queues", "most"), [(1, 700), (64, 20_000)])
def test_memory_is_what_is_stated(queues, most):
    history = filled(busy(2 * BLOCK, queues))
    per_sample = history.memory / (2 * BLOCK)
    full = 36_000 if queues == 1 else 6_000
    print(f"{queues} queues: {per_sample:.0f} bytes a sample, {per_sample * full / 1e6:.0f} MB full")
    assert per_sample < most


def test_packing_keeps_every_field_there_is():
    full = everything()
    later = replace(full, monotonic_ns=full.monotonic_ns + 5)
    assert unpack(pack([full, later, sample(1), full])) == [full, later, sample(1), full]
