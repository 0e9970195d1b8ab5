"""The drawing functions: pure, so tested with numbers and with whatever hypothesis thinks of."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from textual.geometry import Region

from bqltop.model import Event, QueueSample, Unit
from bqltop.tui.arrange import LEAST, Wants, arrange
from bqltop.tui.draw import bars, braille, chart, head, help, line, palette, panels, queues
from bqltop.tui.frame import Frame, Row, View, rows
from bqltop.window import QueueWindow

SCENARIOS = [("veth", 1, True), ("veth", 8, False), ("packets", 8, True), ("bytes", 3, True), ("busy", 64, True)]


def frame_of(scenario: str, count: int, ebpf: bool, ticks: int = 15) -> Frame:
    from fake_source import FakeSource

    from bqltop.tui.feed import Feed

    feed = Feed()
    for sample in FakeSource(scenario, count, ebpf=ebpf).samples(ticks):
        feed.take(sample)
    return feed.frame(0.1)


# -- arrange -------------------------------------------------------------------------------------------------------


@given(st.integers(-1, 400), st.integers(-1, 200), st.integers(0, 300), st.integers(0, 60), st.integers(0, 20),
       st.booleans())
def test_panels_never_overlap_nor_leave_the_terminal(width, height, queue_lines, qdiscs, napis, side):
    regions = arrange(width, height, Wants(queue_lines, qdiscs, napis, side))
    if width < LEAST[0] or height < LEAST[1]:
        assert set(regions) == {"small"}
        return
    screen = Region(0, 0, width, height)
    assert {"header", "verdict", "queues", "keys"} <= set(regions)
    assert ("side" in regions) == side
    placed = list(regions.items())
    for number, (name, region) in enumerate(placed):
        assert region in screen, name
        assert region.width > 0, name
        assert region.height > 0, name
        for other, its_region in placed[number + 1 :]:
            assert not region.overlaps(its_region), (name, other)


def test_what_is_shown_at_the_sizes_people_use():
    everything = {"header", "verdict", "queues", "chart", "napi", "qdiscs", "events", "keys"}
    for size in ((80, 24), (120, 40), (200, 50)):
        assert set(arrange(*size, Wants(8, 9, 8))) == everything
    assert arrange(120, 40, Wants(3))["queues"].height == 5
    assert arrange(200, 50, Wants(64))["queues"].height >= 18


# -- the queue table -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("scenario", "count", "ebpf"), SCENARIOS)
@pytest.mark.parametrize("width", [40, 59, 60, 80, 99, 100, 120, 160, 200, 300])
def test_every_row_is_exactly_as_wide_as_the_table(scenario, count, ebpf, width):
    shown, _ = rows(frame_of(scenario, count, ebpf), View())
    placed = queues.place(queues.columns_for(shown, width), width)
    for strip in [queues.header(placed, width), *(queues.row_strip(row, placed, width, True) for row in shown)]:
        assert strip.cell_length == width
        assert cell_len(strip.text) == width


def test_columns_are_dropped_by_priority_as_the_width_shrinks():
    shown, _ = rows(frame_of("packets", 8, True), View())

    def names(width: int) -> list[str]:
        return [p.column.id for p in queues.place(queues.columns_for(shown, width), width)]

    assert names(40)[:3] == ["index", "state", "stopped"]
    assert "inflight" in names(40)
    assert {"inflight", "unit", "ring", "packets_per_s"} <= set(names(80))
    assert {"completed_per_s", "busy_per_s", "dark_buffer_s", "timeouts"} <= set(names(120))
    assert {"limit_min", "inflight_p99", "qdisc_sojourn_p50_s"} <= set(names(220))
    for narrow, wide in ((40, 80), (80, 120), (120, 200)):
        assert set(names(narrow)) <= set(names(wide))


def cells_of(column: str, sample: QueueSample, window: QueueWindow | None = None, room: int = 30) -> str:
    row = Row(sample, window or QueueWindow(sample.index), sample.ring_used)
    draw = next(c for c in queues.columns_for([row], 120) if c.id == column).draw
    return "".join(segment.text for segment in draw(row, room))


def test_small_packet_limits_are_not_scaled_away():
    text = cells_of("inflight", QueueSample(0, limit=2, inflight=1, unit=Unit.PACKETS), room=35)
    assert text.split()[0] == "1/2"
    assert text.count("█") == 10
    assert text.count("·") == 10


def test_inflight_above_the_limit_fills_the_bar_and_no_more():
    text = cells_of("inflight", QueueSample(0, limit=2, inflight=3, unit=Unit.PACKETS), room=35)
    assert text.split()[0] == "3/2"
    assert text.count("█") == 20


def test_a_limit_of_0_is_no_division_by_zero():
    assert "0/0" in cells_of("inflight", QueueSample(0, limit=0, inflight=0))
    assert cells_of("inflight", QueueSample(0, limit=0, inflight=1), room=35).count("█") == 20


def test_marks_of_limit_min_and_limit_max():
    assert bars.limit_marks(100, 50, 1000, 20) == {10: "m"}
    assert bars.limit_marks(100, 0, 100, 20) == {19: "M"}
    assert bars.limit_marks(100, 100, 1879048192, 20) == {19: "m"}
    assert bars.limit_marks(0, 5, 10, 20) == {}


def test_state_lamps_are_letters():
    now = QueueSample(0, drv_xoff=True, stack_xoff=False, frozen=False)
    assert cells_of("state", now, room=11) == "DRV ·   ·  "
    assert cells_of("state", now, room=3) == "D··"
    recent = QueueWindow(0, stopped_bql_share=0.2)
    assert cells_of("state", QueueSample(0, drv_xoff=False, stack_xoff=False, frozen=True), recent, 11) == "·   stk FRZ"
    assert cells_of("state", QueueSample(0), room=11) == "?   ?   ?  "


def test_what_is_not_to_be_had_is_a_dash_and_no_bql_is_said():
    unseen = QueueSample(0)
    for column in ("packets_per_s", "busy_per_s", "dark_buffer_s", "stopped"):
        assert cells_of(column, unseen, room=8).strip() == "-"
    assert cells_of("inflight", unseen).strip() == "-"
    assert cells_of("inflight", QueueSample(0, drv_xoff=False)).strip() == "no BQL"


def test_ranges():
    assert queues.ranges([1, 2, 3, 6, 8, 9]) == "1-3, 6, 8-9"
    assert queues.ranges([]) == ""


# -- rows: folding and sorting -------------------------------------------------------------------------------------


def test_idle_queues_fold_but_never_a_selected_stopped_or_filled_one():
    frame = frame_of("packets", 16, True)
    shown, folded = rows(frame, View())
    assert [row.sample.index for row in shown] == [0, 5, 10, 15]
    assert folded == [i for i in range(16) if i % 5]
    shown, folded = rows(frame, View(selected=7))
    assert 7 in [row.sample.index for row in shown]
    assert 7 not in folded
    assert rows(frame, View(fold_idle=False))[1] == []


def test_sorting_puts_the_highest_first_and_equals_by_number():
    frame = frame_of("busy", 64, True)
    for sort in ("stopped", "inflight", "rate"):
        shown, _ = rows(frame, View(sort=sort))
        assert len(shown) == 64
    by_rate = [row.window.packets_per_s for row in rows(frame, View(sort="rate"))[0]]
    assert by_rate == sorted(by_rate, reverse=True)


# -- bars and braille ----------------------------------------------------------------------------------------------


@given(st.floats(-1, 2), st.integers(0, 60))
def test_a_bar_has_its_width_and_a_little_is_never_nothing(share, width):
    text = bars.filled(share, width)
    assert len(text) == width
    if share > 0 and width:
        assert text.strip()
    if share <= 0:
        assert not text.strip()


@given(st.floats(0, 1), st.integers(1, 60), st.dictionaries(st.integers(0, 59), st.sampled_from("mM"), max_size=2))
def test_a_marked_bar_keeps_its_width(share, width, marks):
    marks = {place: mark for place, mark in marks.items() if place < width}
    text = "".join(s.text for s in bars.bar(share, width, palette.BQL, marks))
    assert len(text) == width
    for place, mark in marks.items():
        assert text[place] == mark


def test_work_buckets_are_shares_of_all_polls():
    cells = [0] * 65
    cells[1], cells[63], cells[64] = 25, 25, 50
    shares = dict(bars.work_buckets(cells))
    assert shares["1"] == 0.25
    assert shares["32-63"] == 0.25
    assert shares["64+"] == 0.5
    assert sum(shares.values()) == 1.0
    assert sum(dict(bars.work_buckets([0] * 65)).values()) == 0


def test_slow_samples_leave_no_holes_but_a_silence_does():
    point = (1.0, 2.0, 1.5)
    held = chart.held([None, point, None, None, None, point], 2)
    assert held == (None, (1.0, 2.0), (1.5, 1.5), (1.5, 1.5), None, (1.0, 2.0))


@given(st.lists(st.none() | st.tuples(st.floats(0, 1e9), st.floats(0, 1e9)).map(sorted).map(tuple), max_size=200),
       st.integers(1, 30), st.floats(0, 1e9), st.booleans())
def test_rows_of_braille_are_as_many_and_as_wide_as_asked(spans, height, top, fill):
    drawn = braille.rows(spans, height, top, fill=fill)
    assert len(drawn) == height
    for text in drawn:
        assert len(text) == (len(spans) + 1) // 2
        assert all(c == " " or 0x2800 < ord(c) <= 0x28FF for c in text)


def test_known_dots():
    assert braille.rows([(0, 0), (0, 0)], 1, 1.0) == ["⣀"]
    assert braille.rows([(1, 1), (1, 1)], 1, 1.0) == ["⠉"]
    assert braille.rows([(0, 1), None], 1, 1.0) == ["⡇"]
    assert braille.rows([(1, 1), (1, 1)], 1, 1.0, fill=True) == ["⣿"]


@given(st.lists(st.floats(0, 1e12), max_size=20))
def test_a_nice_top_is_at_or_above_all_and_not_far_off(values):
    top = braille.nice_top(values)
    assert top >= max(values, default=0) * (1 - 1e-9)
    assert top <= max(2.0 * max(values, default=0), 1.0)


# -- lines ---------------------------------------------------------------------------------------------------------


@given(st.text(max_size=40), st.integers(0, 30))
def test_any_text_is_cut_and_filled_to_its_width(text, width):
    clean = line.literal(text)
    assert cell_len(line.cut(clean, width)) <= width
    assert cell_len(line.left(clean, width)) == width
    assert cell_len(line.right(clean, width)) == width
    assert all(cell_len(part) <= max(width, 2) for part in line.wrap(clean, width))


@given(st.text(max_size=40), st.integers(0, 30))
def test_cut_within_keeps_the_width_and_both_ends(text, width):
    clean = line.literal(text)
    shown = line.cut_within(clean, width)
    assert cell_len(shown) <= width
    if cell_len(clean) <= width:
        assert shown == clean
    assert line.cut_within("container-alpha", 9) == "cont…lpha"


def test_a_name_of_letters_without_width_is_cut_too():
    assert len(line.cut_within("ab" * 30 + "\u0301" * 4000, 20)) < 100


@given(st.text(max_size=60))
def test_no_control_character_reaches_the_terminal(text):
    assert line.literal(text).isprintable()


def test_wrapping_loses_no_word():
    text = "The driver stops queue 0 for 93 % of the time: its ring is full (251 of 256)."
    for width in range(1, 90):
        assert "".join(line.wrap(text, width)).replace(" ", "") == text.replace(" ", "")


@given(st.text(max_size=30), st.integers(0, 100), st.text(max_size=30))
def test_a_rule_has_its_width(title, width, note):
    assert line.rule(line.literal(title), width, line.literal(note)).cell_length == width


# -- panels --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("scenario", "count", "ebpf"), SCENARIOS)
@pytest.mark.parametrize("width", [1, 10, 34, 50, 80, 140])
@pytest.mark.parametrize("height", [0, 1, 2, 4, 9, 20])
def test_every_panel_fills_exactly_its_region(scenario, count, ebpf, width, height):
    frame = frame_of(scenario, count, ebpf)
    drawn = {
        "qdiscs": panels.qdiscs(frame, width, height),
        "napi": panels.napi(frame, width, height) if height else [],
        "events": panels.events(frame.events, width, height),
        "verdict": head.verdict(frame.verdicts, width, height),
    }
    for name, strips in drawn.items():
        assert len(strips) == height, name
        for strip in strips:
            assert strip.cell_length == width, name


@pytest.mark.parametrize("width", [1, 5, 40, 80, 120, 200])
def test_header_keys_and_help_have_their_width(width):
    frame = frame_of("veth", 1, True)
    strips = [*head.header(frame, View(paused=True), width, 2), head.keys([("q", "quit")], width)]
    if width >= 20:
        strips += help.page(width)
    assert {strip.cell_length for strip in strips} == {width}


def test_what_the_screen_is_stays_in_a_narrow_header_and_the_name_gives_way():
    frame = frame_of("veth", 1, True)
    named = replace(frame.sample.device, name="a-long-name-0-15")
    frame = replace(frame, sample=replace(frame.sample, device=named))
    text = head.header(frame, View(paused=True, badges=("REC",)), 34, 2)[0].text
    assert "PAUSED" in text
    assert " REC " in text
    assert "a-long-name-…  " in text


def test_which_queue_a_qdisc_is_of_stays_when_its_kind_is_cut():
    frame = frame_of("bytes", 4, True)
    assert panels.qdiscs(frame, 30, 6)[1].text.startswith(" mq")
    for width in (30, 40, 60):
        assert " q0 " in panels.qdiscs(frame, width, 6)[2].text


def test_events_are_newest_first():
    happened = [Event(i * 10**9, "x", f"event {i}") for i in range(5)]
    texts = [strip.text for strip in panels.events(happened, 40, 3)]
    assert [text.split()[-1] for text in texts] == ["4", "3", "2"]


def test_lanes_share_the_height_and_number_no_more_than_wanted():
    assert chart.split(60, 20, 3) == (1, [7, 7, 6])
    assert chart.split(140, 20, 3) == (2, [10, 10])
    assert chart.split(60, 2, 3) == (1, [])
    assert chart.split(60, 5, 9) == (1, [5])


def test_refresh_rates_read_well():
    assert [head.refresh_rate(s) for s in (0.05, 0.1, 0.5, 1.0, 2.0)] == ["20 Hz", "10 Hz", "2 Hz", "1 Hz", "every 2 s"]
