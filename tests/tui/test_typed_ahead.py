"""Keys that come faster than the pages they are for."""

from __future__ import annotations

import pytest
from textual import events

from bqltop.tui.screens.diagnostics import DiagnosticsScreen
from bqltop.tui.screens.events import EventsScreen
from bqltop.tui.screens.help import HelpScreen

LETTERS = {"?": "question_mark", " ": "space"}


@pytest.mark.parametrize("opener", ["?", "d", "e", "t", "l"])
@pytest.mark.parametrize("rest", ["jjkk", " j", "44", "GgG"])
async def test_typing_ahead_never_ends_the_program(fed_app, opener, rest):
    app = fed_app()
    async with app.run_test(size=(100, 30)) as pilot:
        app.play(30)
        await pilot.pause()
        for letter in opener + rest:
            app.post_message(events.Key(LETTERS.get(letter, letter), letter))
        await pilot.pause(0.2)
        assert app.is_running
        assert app.failure is None


@pytest.mark.parametrize("screen", [HelpScreen, DiagnosticsScreen, EventsScreen])
@pytest.mark.parametrize("key", ["j", "space", "pageup"])
async def test_a_page_that_is_not_yet_made_takes_no_keys(fed_app, screen, key):
    app = fed_app()
    async with app.run_test(size=(100, 30)) as pilot:
        app.play(3)
        page = screen()
        app.push_screen(page)
        await app.on_event(events.Key(key, None))
        page.action_scroll(1)  # by whatever way a key got there
        if screen is EventsScreen:
            page.action_filter()
        else:
            page.action_page(1)
        await pilot.pause()
        assert isinstance(app.screen, screen)
        assert app.failure is None
