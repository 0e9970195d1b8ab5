"""p goes to the other end, n to whatever the device is connected to, Esc back."""

from __future__ import annotations

import pytest
from fake_devices import BLUE, WEB, FakeDevices, GoingApp
from fake_source import FakeSource

from bqltop.discovery.neighbours import Neighbour
from bqltop.tui.screens.neighbours import NeighboursScreen, page

PEER = Neighbour("peer", 2, "eth0", WEB, "veth")
FOUND = [
    PEER,
    Neighbour("master", 8, "br0", BLUE, "bridge"),
    Neighbour("upper", 9, "[red].100", BLUE, "vlan"),
    Neighbour("lower", 10, None, None),
]


def said(app) -> str:
    return app.live.query_one("#keys").render_line(0).text


async def started(app: GoingApp, pilot, found=FOUND) -> None:
    await pilot.pause()
    app.devices.found = list(found)
    app.devices.watched = {(1, 7): 0}
    app.play(12, s0=FakeSource("veth"))
    app.devices.answer = (1, "")


async def test_p_shows_the_peer_p_again_comes_back_and_escape_closes_it():
    app = GoingApp(FakeDevices())
    async with app.run_test(size=(120, 40)) as pilot:
        await started(app, pilot)
        await pilot.press("p")
        await pilot.pause(0.2)
        assert app.devices.asked == [(WEB, 2)]
        app.play(12, s1=FakeSource("packets", name="eth0"))
        await pilot.pause()
        assert app.stream == 1
        app.devices.found = [Neighbour("peer", 7, "veth0", FakeDevices().devices[0].namespace, "veth")]
        await pilot.press("p")
        await pilot.pause(0.2)
        assert app.stream == 0
        assert len(app.devices.asked) == 1, "what is watched already is not opened again"
        await pilot.press("2", "escape")
        await pilot.pause()
        assert app.devices.dropped == [1]
        assert app.stream == 0
        assert list(app.feeds) == [0]
        app.play(1)
        assert list(app.feeds) == [0], "samples that were under way are not a new device"
        await pilot.press("escape")
        assert list(app.feeds) == [0], "what was named on the command line stays"


async def test_p_pressed_twice_opens_one_device():
    app = GoingApp(FakeDevices())
    async with app.run_test(size=(120, 40)) as pilot:
        await started(app, pilot)
        told = []
        app.devices.watch = lambda where, which, tell: (app.devices.asked.append((where, which)), told.append(tell))
        await pilot.press("p", "p")
        await pilot.pause(0.2)
        told[0](1, "")
        app.devices.watched[WEB.inode, 2] = 1
        await pilot.press("p")
        await pilot.pause(0.2)
        assert app.devices.asked == [(WEB, 2)]
        app.play(12, s1=FakeSource("packets", name="eth0"))
        await pilot.pause()
        assert app.stream == 1


async def test_a_peer_that_cannot_be_entered_and_none_at_all_are_said():
    app = GoingApp(FakeDevices())
    async with app.run_test(size=(120, 40)) as pilot:
        await started(app, pilot, [Neighbour("peer", 9, None, None)])
        await pilot.press("p")
        await pilot.pause(0.2)
        assert "cannot be entered" in said(app)
        app.devices.found = []
        await pilot.press("p")
        await pilot.pause(0.2)
        assert "veth0 has no other end" in said(app)
        await pilot.press("n")
        await pilot.pause(0.2)
        assert "no other device" in said(app)
        assert app.devices.asked == []


async def test_a_device_that_cannot_be_watched_says_why_in_place_of_the_keys():
    app = GoingApp(FakeDevices())
    async with app.run_test(size=(120, 40)) as pilot:
        await started(app, pilot)
        app.devices.answer = (None, "there is no device 2 there any more")
        await pilot.press("p")
        await pilot.pause(0.2)
        assert "no device 2 there any more" in said(app)
        assert app.stream == 0


async def test_the_menu_goes_where_enter_says():
    app = GoingApp(FakeDevices())
    async with app.run_test(size=(80, 24)) as pilot:
        await started(app, pilot)
        await pilot.press("n")
        await pilot.pause(0.2)
        assert isinstance(app.screen, NeighboursScreen)
        await pilot.press("down", "down", "enter")
        await pilot.pause(0.2)
        assert app.devices.asked == [(BLUE, 9)]
        await pilot.press("n")
        await pilot.pause(0.2)
        await pilot.press("escape")
        assert app.screen is app.live


async def test_ten_devices_are_one_too_many():
    app = GoingApp(FakeDevices())
    async with app.run_test(size=(120, 40)) as pilot:
        await started(app, pilot)
        app.play(1, **{f"s{n}": FakeSource("veth") for n in range(9)})
        await pilot.press("p")
        await pilot.pause(0.2)
        assert "9 devices" in said(app)
        assert app.devices.asked == []


@pytest.mark.parametrize("width", [40, 80, 200])
def test_the_menu_is_as_wide_as_the_window_and_literal(width):
    lines = page("[red]", FOUND, 2, width, 6)
    assert {line.cell_length for line in lines} == {width}
    assert "neighbours of [red]" in lines[0].text
    assert "[red].10" in lines[3].text


@pytest.mark.parametrize("size", [(80, 24), (120, 40)], ids=lambda s: f"{s[0]}x{s[1]}")
def test_the_menu_looks_like_this(snap_compare, size):
    async def before(pilot) -> None:
        await started(pilot.app, pilot)
        await pilot.press("n")
        await pilot.pause(0.2)
        await pilot.press("down")

    assert snap_compare(GoingApp(FakeDevices()), terminal_size=size, run_before=before)


async def beside(app: GoingApp, pilot) -> None:
    """Both ends on one screen."""
    await started(app, pilot, [PEER])
    await pilot.press("P")
    await pilot.pause(0.2)
    app.play(12, s1=FakeSource("packets", 4, name="eth0"))
    await pilot.pause()


async def test_both_ends_side_by_side_and_away_again():
    app = GoingApp(FakeDevices())
    async with app.run_test(size=(200, 50)) as pilot:
        await beside(app, pilot)
        assert app.stream == 0, "the other end is beside the one that is shown, not in its place"
        assert "eth0" in app.live.query_one("#side").render_line(1).text
        await pilot.press("2")
        app.play(1)
        await pilot.pause()
        assert "veth0" in app.live.query_one("#side").render_line(1).text
        await pilot.press("P")
        await pilot.pause(0.2)
        assert not app.live.query("#side")
        await pilot.press("P", "t")
        await pilot.pause(0.2)
        assert len(app.live.query("#side")) == 1
        await pilot.press("t")


async def test_both_ends_need_room():
    app = GoingApp(FakeDevices())
    async with app.run_test(size=(120, 40)) as pilot:
        await started(app, pilot, [PEER])
        await pilot.press("P")
        await pilot.pause(0.2)
        assert "150 columns" in said(app)
        assert not app.live.query("#side")


def test_both_ends_look_like_this(snap_compare):
    async def before(pilot) -> None:
        await beside(pilot.app, pilot)

    assert snap_compare(GoingApp(FakeDevices()), terminal_size=(200, 50), run_before=before)
