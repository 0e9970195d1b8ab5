"""Every screen at three sizes, against stored pictures (tests/tui/__snapshots__; --snapshot-update after a look)."""

from __future__ import annotations

import pytest

SIZES = ((80, 24), (120, 40), (200, 50))
MINUTE = 650
"""Samples at 10 Hz that fill the chart."""


def played(count: int, *keys: str):
    async def run_before(pilot) -> None:
        await pilot.pause()
        pilot.app.play(count)
        await pilot.press(*keys)
        await pilot.pause()

    return run_before


@pytest.mark.parametrize("size", SIZES, ids=lambda s: f"{s[0]}x{s[1]}")
@pytest.mark.parametrize(("scenario", "queues"), [("veth", 1), ("packets", 8), ("packets", 64), ("bytes", 4)])
def test_live_screen(snap_compare, fed_app, scenario, queues, size):
    assert snap_compare(fed_app(scenario, queues), terminal_size=size, run_before=played(MINUTE))


@pytest.mark.parametrize("size", SIZES, ids=lambda s: f"{s[0]}x{s[1]}")
def test_live_screen_without_ebpf(snap_compare, fed_app, size):
    assert snap_compare(fed_app("veth", 1, ebpf=False), terminal_size=size, run_before=played(100))


@pytest.mark.parametrize("size", SIZES, ids=lambda s: f"{s[0]}x{s[1]}")
def test_live_screen_while_the_device_is_away(snap_compare, fed_app, size):
    assert snap_compare(fed_app("veth", 1, away_after=180), terminal_size=size, run_before=played(200))


@pytest.mark.parametrize("size", SIZES, ids=lambda s: f"{s[0]}x{s[1]}")
def test_help(snap_compare, fed_app, size):
    assert snap_compare(fed_app(), terminal_size=size, run_before=played(50, "question_mark"))


def test_256_queues_sorted_and_unfolded(snap_compare, fed_app):
    keys = ("z", "s", "s", "down", "pagedown", "pagedown")
    assert snap_compare(fed_app("veth", 256), terminal_size=(120, 40), run_before=played(50, *keys))


def test_paused(snap_compare, fed_app):
    assert snap_compare(fed_app(), terminal_size=(80, 24), run_before=played(50, "space"))


def test_just_attached(snap_compare, fed_app):
    assert snap_compare(fed_app(), terminal_size=(120, 40), run_before=played(1))


def test_narrow(snap_compare, fed_app):
    assert snap_compare(fed_app("packets", 8), terminal_size=(40, 10), run_before=played(100))


def test_too_small(snap_compare, fed_app):
    assert snap_compare(fed_app(), terminal_size=(30, 5), run_before=played(10))
