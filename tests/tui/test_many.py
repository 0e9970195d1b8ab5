"""Several devices on one screen: tabs, and the life of each by itself."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fake_devices import GoingApp
from fake_source import FakeSource
from test_live import text_of

from bqltop.model import Device
from bqltop.tui.arrange import Wants, arrange
from bqltop.tui.draw import queues
from bqltop.tui.draw import tabs as drawing
from bqltop.tui.tabs import Entry, Tabs


def entries(count: int, shown: int = 0, name: str = "veth{}") -> tuple[Entry, ...]:
    return tuple(Entry(n + 1, Device(name.format(n), n + 2, netns="blue"), n == shown, False, n / 10) for n in range(count))


@pytest.mark.parametrize("width", [40, 80, 120, 200])
@pytest.mark.parametrize("count", [1, 2, 5, 9])
def test_the_shown_tab_is_always_there_and_nothing_is_wider_than_the_window(width, count):
    for shown in range(count):
        strip = drawing.line(entries(count, shown), width)
        assert strip.cell_length == width
        assert f"[{shown + 1} veth{shown}"[:10] in strip.text


def test_tabs_that_do_not_fit_are_hinted_at():
    text = drawing.line(entries(9, 4, "a-long-name-{}"), 80).text
    assert text.startswith("‹")
    assert text.rstrip().endswith("›")


def test_of_names_that_begin_alike_both_ends_are_seen():
    alike = (Device("veth0", 2, netns="container-alpha"), Device("veth0", 3, netns="container-omega"),
             Device("enp0s31f6np0", 4), Device("enp0s31f6np1", 5, netns="blue"))  # fmt: skip
    entries_ = [Entry(n + 1, device, n == 0, False, 0.5) for n, device in enumerate(alike)]
    assert [drawing.title(entry, 13) for entry in entries_] == ["veth0@con…pha", "veth0@con…ega", "enp0s31f6np0", "enp0s31f6np1"]
    assert [drawing.title(entry, 9) for entry in entries_][2:] == ["enp0…6np0", "enp0…6np1"]


def test_names_from_outside_are_literal():
    for name in ("[red]", "[/", "x'y\"z", "é1", "a\x1b[31m"):
        assert name.replace("\x1b", "�") in drawing.line(entries(2, name=name), 120).text


def test_a_tab_says_how_long_its_worst_queue_was_stopped_in_the_last_second():
    tabs, fake = Tabs(), FakeSource("veth", 4)
    for sample in fake.samples(12):
        tabs.take(sample)
    (entry,) = tabs.entries([0], 0)
    assert 0.85 < entry.stopped < 0.97


def test_a_new_attachment_is_no_spike_in_a_tab():
    tabs, fake = Tabs(), FakeSource("veth")
    first, *_, last = fake.samples(12)
    tabs.take(replace(first, epoch=1))
    tabs.take(replace(last, epoch=2))
    assert tabs.entries([0], 0)[0].stopped is None
    tabs.take(replace(last, epoch=2, present=False))
    assert tabs.entries([0], 0)[0].away


@pytest.mark.parametrize("size", [(40, 10), (80, 24), (120, 40), (200, 50), (60, 16)])
def test_the_line_of_tabs_takes_one_row_and_panels_do_not_overlap(size):
    regions = arrange(*size, Wants(queues=8, qdiscs=3, napis=2, tabs=True, tun=4))
    assert regions["tabs"].height == 1
    taken = [region for region in regions.values() if region.area]
    assert all(not one.overlaps(other) for one in taken for other in taken if one is not other)
    assert all(region.bottom <= size[1] and region.right <= size[0] for region in taken)


async def test_digits_and_tab_switch_and_each_device_has_its_own_figures():
    app = GoingApp()
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        app.play(30, s0=FakeSource("veth", name="first"), s1=FakeSource("packets", 8, name="second"))
        await pilot.pause()
        assert "[1 first stopped" in text_of(app)
        await pilot.press("2")
        await pilot.pause()
        assert "[2 second stopped" in text_of(app)
        assert len(app.feed.sample.queues) == 8
        await pilot.press("tab")
        assert app.stream == 0
        await pilot.press("shift+tab")
        assert app.stream == 1
        await pilot.press("9", "3")
        assert app.stream == 1, "there is no such tab"


async def test_one_device_has_no_line_of_tabs():
    app = GoingApp()
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        app.play(10, s0=FakeSource("veth"))
        await pilot.press("2", "1")
        assert app.live.query_one("#tabs").region.area == 0


async def test_a_device_that_goes_away_and_comes_back_has_no_rate_spike():
    app, fake = GoingApp(), FakeSource("veth", name="coming")
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        app.play(30, s0=fake, s1=FakeSource("packets"))
        fake.away_after = 0
        app.play(20)
        await pilot.pause()
        text = text_of(app)
        assert "coming is away" in text
        assert "[1 coming away]" in text
        # Back after a while, its counters far ahead of what was seen last: another attachment.
        fake.away_after = None
        fake._counters[0].packets += 50_000_000
        original = fake.sample
        fake.sample = lambda: replace(original(), epoch=2)
        app.play(30)
        await pilot.pause()
        assert "coming is away" not in text_of(app)
        window = app.feed.frame(0.1).window
        assert 60_000 < window.queues[0].packets_per_s < 80_000


@pytest.mark.parametrize("count", [1, 8, 64, 256, 1024])
async def test_any_number_of_queues_scrolls_sorts_and_folds(count):
    app = GoingApp()
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        app.play(15, s0=FakeSource("packets", count))
        await pilot.press("end", "s", "s", "s", "z", "home", "down", "pagedown")
        await pilot.pause()
        app.play(2)
        table = app.live.query_one("#queues")
        assert table.shown
        assert {line.cell_length for line in table._lines} == {80}


@pytest.mark.parametrize(
    ("rates", "said"),
    [
        ([(0, 900.0), (1, 50.0), (2, 50.0)], "uneven: q0 has 90 % of the packets"),
        ([(0, 10.0), (7, 700.0), (2, 0.0), (3, None)], "uneven: q7 has 99 % of the packets"),
        ([(0, 700.0), (1, 300.0)], ""),
        ([(0, 9.0), (1, 1.0)], ""),
        ([(0, 5000.0)], ""),
        ([(0, None), (1, None)], ""),
        ([], ""),
    ],
)
def test_one_queue_with_most_of_the_packets_is_marked(rates, said):
    assert queues.imbalance(rates) == said


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 50)], ids=lambda s: f"{s[0]}x{s[1]}")
def test_three_devices_look_like_this(snap_compare, size):
    async def before(pilot) -> None:
        await pilot.pause()
        pilot.app.play(100, s0=FakeSource("veth", name="[red]"), s1=FakeSource("packets", 8, name="x'y\"z"),
                       s2=FakeSource("bytes", 4, name="usb0", away_after=60))
        await pilot.press("2")
        await pilot.pause()

    assert snap_compare(GoingApp(), terminal_size=size, run_before=before)
