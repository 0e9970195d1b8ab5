"""The list of all devices: what is shown, how it is filtered and sorted, and what Enter and Esc do."""

from __future__ import annotations

import asyncio
import time

import pytest
from fake_devices import BLUE, HOST, FakeDevices, GoingApp, listed
from fake_source import FakeSource

from bqltop.roster import Roll
from bqltop.tui.devices import SORTS, DeviceTable
from bqltop.tui.draw import devices
from bqltop.tui.screens.devices import DevicesScreen

SIZES = ((80, 24), (120, 40), (200, 50))


def text(strips) -> str:
    return "\n".join(strip.text for strip in strips)


def table_of(host=HOST) -> DeviceTable:
    table = DeviceTable()
    table.take(FakeDevices(host).list())
    return table


async def until_listed(app: GoingApp, looks: int = 2) -> None:
    for _ in range(100):
        await asyncio.sleep(0.02)
        if app.devices.looks >= looks and isinstance(app.screen, DevicesScreen):
            break
    await asyncio.sleep(0.05)


def page_of(app: GoingApp) -> str:
    return text(app.screen.list.render_line(y) for y in range(app.size.height))


# -- the table -------------------------------------------------------------------------------------------------------


def test_a_filter_looks_everywhere_and_every_word_must_be_found():
    table = table_of()
    for words, names in (
        ("eth0", {"eth0", "veth0"}),
        ("VETH0 blue", {"veth0"}),
        ("docker", {"eth0", "veth0"}),
        ("haproxy", {"veth0"}),
        ("[red]", {"[red]"}),
        ("x'y\"z", {"[red]"}),
        ("mlx5", {"eth0"}),
        ("nowhere", set()),
    ):
        table.set_filter(words)
        assert {row.device.name for row in table.rows} == names, words


@pytest.mark.parametrize("sort", SORTS)
def test_every_sort_puts_the_largest_first_and_turns_round(sort):
    table = table_of()
    while table.sort != sort:
        table.next_sort()
    key, largest_first = SORTS[sort]
    values = [key(row) for row in table.rows]
    assert values == sorted(values, reverse=largest_first)
    table.turn_round()
    assert [key(row) for row in table.rows] == sorted(values, reverse=not largest_first)


def test_the_selection_stays_with_its_device_whatever_overtakes_it():
    table = table_of()
    table.move(3)
    chosen = table.current.device
    table.next_sort()
    table.turn_round()
    assert table.current.device == chosen
    table.take(Roll(tuple(device for device in HOST if device != chosen)))
    assert table.current.device != chosen


def test_the_first_row_stays_selected_once_there_are_rates():
    table = DeviceTable()
    table.take(Roll(HOST))
    table.take(FakeDevices().list())
    first = table.current.device
    table.take(Roll(tuple(reversed(HOST))))
    assert table.current.device.key == first.key


def test_no_device_and_no_match_are_told_apart():
    table = DeviceTable()
    assert "looking" in text(devices.page(table, 80, 24))
    table.take(Roll())
    assert "no device" in text(devices.page(table, 80, 24))
    table = table_of()
    table.set_filter("nowhere")
    assert "no device passes the filter" in text(devices.page(table, 80, 24))
    table.move(1)
    assert table.current is None


@pytest.mark.parametrize(("width", "height"), [*SIZES, (40, 10), (24, 5), (23, 5), (1, 1), (300, 3)])
def test_every_line_is_as_wide_as_the_window(width, height):
    strips = devices.page(table_of(), width, height)
    assert len(strips) == height
    assert {strip.cell_length for strip in strips} == {width}


def test_hostile_names_stand_there_literally():
    names = ("[red]", "[/", "x'y\"z", "é1", "日本", "-x", "a\x1b[31mb")
    host = tuple(listed(name, 10 + n, BLUE, owner=name, driver=name) for n, name in enumerate(names))
    shown = text(devices.page(table_of(host), 200, 24))
    assert "\x1b" not in shown
    for name in names:
        assert name.replace("\x1b", "�") in shown


def test_a_thousand_devices_are_taken_and_drawn_in_a_few_milliseconds():
    host = tuple(listed(f"veth{n}", n, BLUE) for n in range(1, 1001))
    roll, table = FakeDevices(host).list(), DeviceTable()
    table.take(roll)
    started = time.process_time()
    for _ in range(10):
        table.take(roll)
        devices.page(table, 200, 50)
    assert (time.process_time() - started) / 10 < 0.05


# -- the screen ------------------------------------------------------------------------------------------------------


async def test_enter_watches_and_escape_comes_back_and_lets_go():
    app = GoingApp(FakeDevices(), start_with_list=True)
    async with app.run_test(size=(120, 40)) as pilot:
        await until_listed(app)
        await pilot.press("slash", *"haproxy", "enter", "enter")
        assert app.devices.asked == [(BLUE, 7)]
        app.play(3, s0=FakeSource("packets", name="veth0"))
        await pilot.pause()
        assert app.screen is app.live
        assert app.feed.sample.device.name == "veth0"
        await pilot.press("escape")
        await until_listed(app, app.devices.looks + 1)
        assert isinstance(app.screen, DevicesScreen)
        assert app.devices.dropped == [0]
        app.play(1)
        assert not app.feeds
        await pilot.press("escape", "escape")
        assert isinstance(app.screen, DevicesScreen), "there is nothing to go back to"


async def test_the_device_can_be_opened_again_after_coming_back():
    app = GoingApp(FakeDevices(), start_with_list=True)
    async with app.run_test(size=(120, 40)) as pilot:
        await until_listed(app)
        for stream in (0, 1):
            app.devices.answer = (stream, "")
            await pilot.press("enter")
            app.fakes = {}
            app.play(3, **{f"s{stream}": FakeSource("veth")})
            await pilot.pause()
            assert app.screen is app.live
            assert list(app.feeds) == [stream]
            await pilot.press("escape")
            await pilot.pause()
            assert isinstance(app.screen, DevicesScreen)


async def test_what_is_in_the_way_is_said_inline_and_the_list_goes_on():
    app = GoingApp(FakeDevices(), start_with_list=True)
    async with app.run_test(size=(120, 40)) as pilot:
        await until_listed(app)
        app.devices.answer = (None, "[red] cannot be entered: Operation not permitted")
        await pilot.press("enter")
        await pilot.pause()
        assert "[red] cannot be entered: Operation not permitted" in page_of(app)
        await pilot.press("down")
        assert "Operation not permitted" not in page_of(app)


async def test_letters_belong_to_the_filter_while_one_is_typed():
    app = GoingApp(FakeDevices(), start_with_list=True)
    async with app.run_test(size=(120, 40)) as pilot:
        await until_listed(app)
        await pilot.press("slash", *"qslrtpd", "backspace")
        assert app.screen.table.filter == "qslrtp"
        assert "no device passes the filter" in page_of(app)
        await pilot.press("escape")
        assert app.screen.table.filter == ""
        assert "devices of all namespaces  8" in page_of(app)


async def test_the_list_opens_over_the_live_screen_and_marks_what_is_watched():
    app = GoingApp(FakeDevices())
    app.devices.watched = {(1, 7): 0}
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        app.play(5, s0=FakeSource("veth"))
        await pilot.press("l")
        await until_listed(app)
        assert "•veth0" in page_of(app) or "▸veth0" in page_of(app)
        await pilot.press("l")
        assert app.screen is app.live
        assert app.devices.dropped == []
        looks = app.devices.looks
        await asyncio.sleep(1.3)
        assert app.devices.looks == looks, "nothing is listed while the list is not seen"


async def test_a_watched_device_is_shown_and_not_attached_to_twice():
    app = GoingApp(FakeDevices())
    app.devices.watched = {(1, 7): 0}
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        app.play(5, s0=FakeSource("veth"))
        await pilot.press("l")
        await until_listed(app)
        await pilot.press("slash", *"web-1 veth0", "escape")
        app.screen.table.selected = (1, 7)
        await pilot.press("enter")
        assert app.screen is app.live
        assert app.devices.asked == []


async def test_without_a_live_run_there_is_no_list(fed_app):
    app = fed_app()
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        app.play(5)
        await pilot.press("l")
        assert "no list of devices" in app.live.query_one("#keys").render_line(0).text
        await pilot.press("p", "n", "escape")
        assert app.screen is app.live


async def test_no_size_raises():
    app = GoingApp(FakeDevices(), start_with_list=True)
    async with app.run_test(size=(120, 40)) as pilot:
        await until_listed(app)
        for size in ((1, 1), (20, 5), (40, 10), (300, 3), (3, 300), (80, 24)):
            await pilot.resize_terminal(*size)
            await pilot.press("down", "pagedown")
        assert "veth0" in page_of(app)


@pytest.mark.parametrize("size", SIZES, ids=lambda s: f"{s[0]}x{s[1]}")
def test_the_list_looks_like_this(snap_compare, size):
    async def before(pilot) -> None:
        await until_listed(pilot.app)
        await pilot.press("down")

    assert snap_compare(GoingApp(FakeDevices(), start_with_list=True), terminal_size=size, run_before=before)


def test_a_filtered_list_looks_like_this(snap_compare):
    async def before(pilot) -> None:
        await until_listed(pilot.app)
        await pilot.press("slash", *"blue", "s", "backspace")

    assert snap_compare(GoingApp(FakeDevices(), start_with_list=True), terminal_size=(80, 24), run_before=before)
