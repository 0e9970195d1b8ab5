"""Runs the application and leaves nothing behind: the terminal as it was, the source closed, one line of reason."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import traceback
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bqltop.tui.app import BqltopApp

ENDING_SIGNALS = (signal.SIGTERM, signal.SIGHUP)


def run(app: BqltopApp) -> int:
    """Show ``app`` until it is left. Returns the exit status: 0; 1 after an error, which is told in one line on
    standard error (with BQLTOP_DEBUG=1 also its traceback); 128 + the number of the signal that ended it.
    """
    ended_by: list[int] = []
    try:
        status = asyncio.run(_run(app, ended_by))
    except KeyboardInterrupt:
        ended_by.append(signal.SIGINT)
        status = 0
    except Exception as error:
        app.failure = app.failure or error
        status = 1
    finally:
        app.source.close()
        app.stop_watching()
        for sentence in app.tuner.end():
            print(f"bqltop: not taken back: {sentence}", file=sys.stderr)
        recorded = app.record.end()
        if recorded:
            print(f"bqltop: {recorded}", file=sys.stderr)
    if app.failure is not None:
        _tell(app.failure)
        return 1
    return 128 + ended_by[0] if ended_by else status


async def _run(app: BqltopApp, ended_by: list[int]) -> int:
    """The application within the event loop, where signals arrive between two handlers."""
    loop = asyncio.get_running_loop()

    def end(number: int) -> None:
        ended_by.append(number)
        app.exit(1)

    for number in ENDING_SIGNALS:
        loop.add_signal_handler(number, end, number)
    try:
        # The mouse is left to the terminal, so that text can be marked and copied during an incident.
        result = await app.run_async(mouse=False)
    finally:
        for number in ENDING_SIGNALS:
            loop.remove_signal_handler(number)
    return result if isinstance(result, int) else app.return_code or 0


def _tell(error: BaseException) -> None:
    """One line of what went wrong. The terminal may be gone: then there is nobody to tell."""
    try:
        if os.environ.get("BQLTOP_DEBUG") == "1":
            traceback.print_exception(error)
        text = " ".join(str(error).split()) or type(error).__name__
        name = "" if isinstance(error, OSError) else f"{type(error).__name__}: "
        hint = "" if os.environ.get("BQLTOP_DEBUG") == "1" else " (BQLTOP_DEBUG=1 shows where)"
        print(f"bqltop: {name}{text}{hint}", file=sys.stderr)
    except OSError:
        pass
