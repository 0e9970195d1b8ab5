"""Play a recording as if it happened now: the same screen, or the same lines, on any machine and without root."""

from __future__ import annotations

import argparse
import sys

from bqltop.arguments import add_output, check_output, headless, number
from bqltop.fault import Fault
from bqltop.recording import Replay
from bqltop.recording.replay import MAX_SPEED, MIN_SPEED
from bqltop.recording.when import EXAMPLES


def speed(text: str) -> float:
    """A speed: 1, 10x, 0.5. Raises ArgumentTypeError."""
    value = number(text.removesuffix("x"))
    if not MIN_SPEED <= value <= MAX_SPEED:
        raise argparse.ArgumentTypeError(f"{text!r} is not a speed from {MIN_SPEED:g} to {MAX_SPEED:g}")
    return value


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="a recording (docs/recording.md), packed or not, or what --json wrote")
    parser.add_argument("--speed", type=speed, metavar="X",
                        help="0.1 to 100 times as fast (screen: 1; --json, --csv, --text: as fast as it can be read)")
    parser.add_argument("--at", metavar="TIME", help=f"begin there: {EXAMPLES}")
    parser.add_argument("--loop", action="store_true", help="begin again at the end")
    add_output(parser)


def run(arguments: argparse.Namespace) -> int:
    """The exit status. Raises Fault for a file that cannot be replayed."""
    check_output(arguments)
    lines = headless(arguments) is not None
    try:
        replay = Replay(arguments.file, speed=arguments.speed or (None if lines else 1.0), loop=arguments.loop, hold=not lines)
        if arguments.at is not None:
            replay.seek_to(replay.timeline.last_to(arguments.at))
    except ValueError as error:
        raise Fault(str(error)) from None
    with replay:
        return show(replay, arguments)


def show(replay: Replay, arguments: argparse.Namespace) -> int:
    """Its samples to the screen or to standard output; the exit status."""
    return _lines(replay, arguments) if headless(arguments) else _screen(replay)


def _lines(replay: Replay, arguments: argparse.Namespace) -> int:
    from bqltop import output

    status = output.run(headless(arguments), replay, count=arguments.count, interval=arguments.interval or 0.0,
                        once=arguments.once)
    if replay.notice:
        print(f"bqltop: {replay.notice}", file=sys.stderr)
    return status


def _screen(replay: Replay) -> int:
    from bqltop.tui.app import BqltopApp
    from bqltop.tui.app import run as run_app

    return run_app(BqltopApp(replay))
