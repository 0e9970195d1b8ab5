"""What keys, sizes and samples do to the live screen, by Textual's pilot."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace

import pytest
from fake_source import FakeSource

from bqltop.history import History
from bqltop.model import Peer
from bqltop.tui import BqltopApp
from bqltop.tui.screens.help import HelpScreen
from bqltop.tui.widgets.chart import Chart
from bqltop.tui.widgets.queues import QueueTable


def text_of(app: BqltopApp) -> str:
    """Everything on the screen as plain text."""
    width, height = app.size
    lines = [[" "] * width for _ in range(height)]
    for widget in app.screen.query("*"):
        region = widget.region
        if widget.is_on_screen and region.area and not widget.is_container:
            for y in range(region.height):
                for x, character in enumerate(widget.render_line(y).text[: region.width]):
                    lines[region.y + y][region.x + x] = character
    return "\n".join("".join(line) for line in lines)


async def test_pause_stops_the_drawing_but_not_the_collecting(fed_app):
    app = fed_app()
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        app.play(30)
        await pilot.press("space")
        before = text_of(app)
        assert "PAUSED" in before
        app.play(100)
        await pilot.pause()
        assert text_of(app) == before
        assert app.feed.taken == 130
        await pilot.press("space")
        after = text_of(app)
        assert "PAUSED" not in after
        assert after != before


async def test_plus_and_minus_change_the_rate_of_the_source_at_once(fed_app):
    app = fed_app()
    async with app.run_test() as pilot:
        await pilot.pause()
        app.play(5)
        await pilot.press("minus")
        assert app.source.interval == 0.2
        assert "5 Hz" in text_of(app)
        await pilot.press("plus", "plus", "plus", "plus")
        assert app.source.interval == 0.05
        await pilot.press(*["minus"] * 20)
        assert app.source.interval == 10.0
        assert "every 10 s" in text_of(app)


async def test_q_leaves_also_from_help(fed_app):
    app = fed_app()
    async with app.run_test() as pilot:
        await pilot.pause()
        app.play(5)
        await pilot.press("question_mark")
        assert isinstance(app.screen, HelpScreen)
        await pilot.press("q")
        assert app.screen is app.live
        await pilot.press("q")
    assert app.return_value == 0


async def test_help_names_every_column_of_the_table(fed_app):
    from bqltop import fields
    from bqltop.tui.draw import help, queues
    from bqltop.tui.frame import Row
    from bqltop.window import QueueWindow

    text = "\n".join(strip.text for strip in help.page(100))
    sample = next(FakeSource("packets").samples(1)).queues[0]
    for column in queues.columns_for([Row(sample, QueueWindow(0))], 200):
        for id in column.fields:
            assert fields.get("queue", id).meaning.split(".")[0][:60] in text.replace("\n", " ") or \
                fields.get("queue", id).title in text


async def test_sorting_folding_and_selecting(fed_app):
    app = fed_app("packets", 64)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        app.play(30)
        await pilot.pause()
        assert "51 idle queues" in text_of(app)
        await pilot.press("z")
        assert "idle queues:" not in text_of(app)
        await pilot.press("s")
        assert "by stopped" in text_of(app)
        await pilot.press("down")
        table, chart = app.live.query_one(QueueTable), app.live.query_one(Chart)
        first = app.live.view.selected
        assert first is not None
        assert f"queue {first}" in chart.title(*chart.shown)
        await pilot.press("end")
        assert table.scrolled > 0
        await pilot.press("home", "up")
        assert app.live.view.selected is None
        await pilot.press("down", "escape")
        assert app.live.view.selected is None


@pytest.mark.parametrize("scenario", ["veth", "packets"])
async def test_no_size_and_no_storm_of_resizes_raises(fed_app, scenario):
    app = fed_app(scenario, 64)
    sizes = [(80, 24), (1, 1), (20, 5), (40, 10), (41, 10), (40, 11), (300, 3), (3, 300), (200, 50), (76, 16), (75, 30)]
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        app.play(30)
        for width, height in [*sizes, *reversed(sizes)]:
            await pilot.resize_terminal(width, height)
            app.play(1)
        for step in range(60):
            app.play(1)
            app.post_message(_resize(1 + step * 7 % 150, 1 + step * 5 % 60))
        await pilot.resize_terminal(80, 24)
        app.play(2)
        assert "TX queues" in text_of(app)
        await pilot.resize_terminal(30, 5)
        assert "too small" in text_of(app)


def _resize(width: int, height: int):
    from textual import events
    from textual.geometry import Size

    return events.Resize(Size(width, height), Size(width, height))


HOSTILE = ["[red]", "[/", "x'y\"z", "é1", "[@click=app.quit]", "a\x1b[31mb", "$(reboot)", "日本", "-rf", "{x}"]


@pytest.mark.parametrize("name", HOSTILE)
async def test_names_from_outside_are_shown_literally(fed_app, name):
    app = fed_app("packets", 1, name=name)
    shown = name.replace("\x1b", "�")
    original = app.fake.sample

    def sample():
        made = original()
        device = replace(made.device, netns=name, peer=Peer(2, name, name), driver=name, qdisc=name)
        event = tuple(replace(e, text=f"by {name}") for e in made.events)
        qdiscs = tuple(replace(q, kind=name) for q in made.qdiscs)
        napis = tuple(replace(n, device=name) for n in made.napis)
        return replace(made, device=device, events=event, qdiscs=qdiscs, napis=napis)

    app.fake.sample = sample
    async with app.run_test(size=(200, 50)) as pilot:
        await pilot.pause()
        app.play(15)
        await pilot.pause()
        header = app.live.query_one("#header").render_line(0).text
        assert f"{shown}@{shown} → {shown}@{shown}" in header
        assert "\x1b" not in header
        events = app.live.query_one("#events")
        assert any(f"by {shown}" in events.render_line(y).text for y in range(1, 6))
        assert shown in app.live.query_one("#qdiscs").render_line(2).text
        assert shown in app.live.query_one("#napi").render_line(2).text


async def test_device_away_keeps_the_last_values_in_grey_and_says_so(fed_app):
    from bqltop.tui.draw import palette

    app = fed_app("veth", 1, away_after=30)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        app.play(40)
        await pilot.pause()
        text = text_of(app)
        assert "AWAY" in text
        assert "veth0 is away" in text
        assert "/256" in text
        row = app.live.query_one("#queues").render_line(2)
        assert {segment.style.color for segment in row} == {palette.FAINT.color}


async def test_missing_ebpf_names_what_is_missing_and_what_to_type(fed_app):
    app = fed_app("veth", 1, ebpf=False)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        app.play(40)
        await pilot.pause()
        assert "needs root: sudo bqltop veth0" in text_of(app)
        assert "? " in app.live.query_one("#queues").render_line(2).text


async def test_the_gap_of_a_suspended_process_is_no_spike(fed_app):
    app = fed_app("veth", 1)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        app.play(30)
        app.fake.interval = 25.0
        app.play(1)
        app.fake.interval = 0.1
        app.play(20)
        await pilot.pause()
        span = app.feed.history.span
        assert app.feed.history.highest("packets_per_s", None, *span) < 80_000


async def test_no_colour_says_the_same(fed_app, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    app = fed_app("packets", 4)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        app.play(30)
        await pilot.pause()
        text = text_of(app)
        assert "STK" in text
        assert app.export_screenshot()


async def test_a_real_thread_feeds_the_screen_and_ends_with_it():
    source = FakeSource("veth", 2, interval=0.05)
    app = BqltopApp(source)
    async with app.run_test(size=(120, 40)) as pilot:
        for _ in range(100):
            await asyncio.sleep(0.05)
            if "pkt/s" in text_of(app) and app.feed.taken > 3:
                break
        assert "attached to veth0" in text_of(app)
        source.close()
        await pilot.press("q")
    assert app.stop_watching()


async def test_a_failing_source_ends_the_application_with_its_error():
    class Broken(FakeSource):
        def sample(self):
            raise OSError(5, "Input/output error")

    app = BqltopApp(Broken())
    async with app.run_test():
        for _ in range(50):
            await asyncio.sleep(0.02)
            if app.failure:
                break
    assert isinstance(app.failure, OSError)
    assert app.return_code == 1


async def test_a_side_panel_opens_beside_the_live_view_and_closes(fed_app):
    from textual.widgets import Static

    app = fed_app("packets", 4)
    for size in ((140, 40), (80, 24)):
        async with app.run_test(size=size) as pilot:
            await pilot.pause()
            app.play(20)
            await app.live.open_side(Static("the panel", id="side"))
            await pilot.pause()
            assert app.live.query_one("#side").region.area > 0
            assert app.live.query_one("#queues").region.area > 0
            await app.live.close_side()
            await pilot.pause()
            assert not app.live.query("#side")
        app = fed_app("packets", 4)


async def test_looking_back_shows_every_panel_at_that_moment(fed_app):
    app = fed_app("packets", 2)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        app.play(700)
        await pilot.pause()
        assert "14:04:32" in text_of(app)
        await pilot.press("left_square_bracket")
        text = text_of(app)
        assert "PAUSED 60 s ago" in text
        assert "14:03:32" in text
        assert "│" in app.live.query_one("#chart").render_line(3).text
        await pilot.press("right", "right")
        assert "59.8 s ago" in text_of(app)
        app.play(10)
        assert "59.8 s ago" in text_of(app), "what is looked at stands still"
        await pilot.press(*["left_square_bracket"] * 5)
        assert "14:03:22" in text_of(app), "not before the beginning"
        await pilot.press("space")
        assert "PAUSED" not in text_of(app)
        assert "14:04:33" in text_of(app)


async def test_a_second_is_one_sample_at_least_where_the_past_is_thinned(fed_app):
    app = fed_app("packets", 1)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        app.feed.history = History(64, 20)
        app.play(700)
        await pilot.press("left_square_bracket")
        seen = [app.live.view.cursor_ns]
        for _ in range(3):
            await pilot.press("comma")
            seen.append(app.live.view.cursor_ns)
        assert seen == sorted(set(seen), reverse=True), "each press another, older one"
        await pilot.press("full_stop")
        assert app.live.view.cursor_ns == seen[-2]


async def test_forward_is_never_backward_also_while_the_device_is_away(fed_app):
    app = fed_app("veth", 1, away_after=100)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        app.play(150)
        here = app.live._frame.sample.monotonic_ns
        await pilot.press("full_stop", "right")
        assert app.live._frame.sample.monotonic_ns == here
        assert app.live.view.cursor_ns is None
        assert "AWAY" in text_of(app)


async def test_going_from_event_to_event_ends_at_both_ends_and_moves_each_time(fed_app):
    app = fed_app("veth", 1)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        app.play(300)
        back = []
        while "no event before" not in text_of(app):
            await pilot.press("less_than_sign")
            back.append(app.live.view.cursor_ns)
        assert back[:-1] == sorted(set(back[:-1]), reverse=True)
        forth = []
        for _ in back[:-2]:
            await pilot.press("greater_than_sign")
            forth.append(app.live.view.cursor_ns)
        assert forth == back[-3::-1], "the same moments the other way"
        await pilot.press("greater_than_sign")
        assert "no event after" in text_of(app)


async def test_the_last_state_before_a_silence_is_drawn(fed_app):
    app = fed_app("packets", 1)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        app.play(20)
        app._draw_after = time.monotonic() + 0.3  # drawing took long: the next one is due later
        for sample in app.fake.samples(1):
            app.take(sample)
            app._draw_in_turn()
        before = text_of(app)
        for _ in range(100):
            await asyncio.sleep(0.05)
            if text_of(app) != before:
                break
        assert app.live._frame.sample.monotonic_ns == app.feed.sample.monotonic_ns


async def test_a_badge_that_comes_while_paused_is_seen(fed_app):
    app = fed_app()
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        app.play(30)
        await pilot.press("space")
        assert " REC " not in text_of(app)
        app.live.show(app.feed.frame(0.1), ("REC",))
        await pilot.pause()
        assert " REC " in text_of(app)


async def test_zooming_the_chart_from_seconds_to_an_hour(fed_app):
    app = fed_app()
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        app.play(100)
        for title in ("last 5 min", "last 15 min", "last 1 h", "last 1 h"):
            await pilot.press("x")
            assert title in text_of(app)
        await pilot.press(*["X"] * 9)
        assert "last 10 s" in text_of(app)


async def test_several_devices_take_turns_with_tab(fed_app):
    app = fed_app("veth", 2)
    other = FakeSource("bytes", 4, name="usb0")
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        for _ in range(20):
            app.take(app.fake.sample())
            app.take(replace(other.sample(), stream=1))
        app.draw_now()
        await pilot.pause()
        text = text_of(app)
        assert "1/2" in text
        assert "veth0 → eth0@web-1" in text
        assert "Tab device" in text
        await pilot.press("down", "tab")
        await pilot.pause()
        text = text_of(app)
        assert "2/2" in text
        assert "usb0" in text
        assert "bytes" in text
        assert app.live.view.selected is None
        await pilot.press("tab")
        assert "veth0 → eth0@web-1" in text_of(app)


async def test_events_are_found_in_the_samples(fed_app):
    app = fed_app("bytes", 1)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        app.play(20)
        app.feed.note([replace(app.feed.events[0], text="you: limit_min 0 -> 8", kind="setting")], marked=True)
        app.play(5)
        await pilot.pause()
        text = text_of(app)
        assert "you: limit_min 0 -> 8" in text
        assert "▲" in text


async def test_a_setting_in_the_samples_is_marked_on_the_chart(fed_app):
    from bqltop.model import Event

    app = fed_app("bytes", 1)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        app.play(20)
        sample = app.fake.sample()
        app.take(replace(sample, events=(Event(sample.time_ns, "setting", "you: tx-usecs 0 -> 50"),)))
        app.play(5)
        await pilot.pause()
        assert app.feed.marks == [sample.time_ns]
        assert "▲" in text_of(app)
