"""Arguments -> what to run; nothing else. What a command needs is imported when it is run."""

from __future__ import annotations

import argparse
import errno
import sys
from collections.abc import Callable, Sequence
from importlib import import_module

from bqltop import __version__, files, stdio
from bqltop.fault import Fault
from bqltop.format import printable

COMMANDS: dict[str, tuple[str, str]] = {
    "watch": ("bqltop.watch", "watch a device (what `bqltop DEV` does; for a device named like a command)"),
    "demo": ("bqltop.demo", "build a flooded veth pair in namespaces of its own and watch it"),
    "export": ("bqltop.export", "serve a device's figures to Prometheus, or write them to a file for it"),
    "replay": ("bqltop.recording.command", "play a recording: the same screen, without root and on any machine"),
    "report": ("bqltop.report_command", "write a recording up as Markdown, fit for a mail"),
    "sweep": ("bqltop.sweep.command", "try settings one after the other and say which is best"),
    "tune": ("bqltop.tuning.command", "list the knobs of a device, or turn them"),
    "restore": ("bqltop.tuning.restore_command", "take back what killed runs left changed"),
    "journal": ("bqltop.tuning.journal_command", "list what bqltop has changed on this machine"),
}
"""Command -> (module with ``configure(parser)`` and ``run(arguments) -> exit status``, help)."""

FAULT = 2
"""Exit status of wrong input: one line says what is wrong and what to do."""


class _Parser(argparse.ArgumentParser):
    """argparse, saying what is wrong in one line."""

    def exit(self, status: int = 0, message: str | None = None):
        sys.stdout.flush()  # what --help wrote: a full disk is told here
        super().exit(status, message)

    def error(self, message: str):
        self.exit(FAULT, f"bqltop: {printable(message)} (bqltop --help)\n")


def main(argv: Sequence[str] | None = None) -> int:
    """The exit status: 0, 2 for wrong input, 130 after Ctrl-C, else what the command says. Without ``argv`` it is a process
    of its own, whose streams are made ready first."""
    if argv is None:
        stdio.prepare()
        files.allow_many()
    arguments = list(sys.argv[1:] if argv is None else argv)
    command = next((word for word in arguments[:1] if word in COMMANDS), None)
    try:
        status = _run("watch", arguments) if command is None else _run(command, arguments[1:])
        sys.stdout.flush()
        return status
    except stdio.ReaderGone:
        return 0
    except KeyboardInterrupt:
        return 130
    except Fault as error:
        print(f"bqltop: {printable(str(error))}", file=sys.stderr)  # a name in it may hold a line's end
        return FAULT
    except OSError as error:
        if error.errno not in (errno.EMFILE, errno.ENFILE):
            raise
        print(f"bqltop: {error.strerror}: allow more with `ulimit -n`", file=sys.stderr)
        return FAULT


def _run(command: str, arguments: list[str]) -> int:
    module = import_module(COMMANDS[command][0])
    parser = _Parser(
        prog="bqltop" if command == "watch" else f"bqltop {command}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description=module.__doc__,
        epilog=_overview() if command == "watch" else None,
    )
    if command == "watch":
        parser.add_argument("--version", action="version", version=f"bqltop {__version__}")
    module.configure(parser)
    run: Callable[[argparse.Namespace], int] = module.run
    # parse_intermixed_args() forgets the "--" on its way to the second of its two passes: a device "-x" were an option.
    parse = parser.parse_args if "--" in arguments else parser.parse_intermixed_args
    return run(parse(arguments))


def _overview() -> str:
    lines = [f"  bqltop {name:<10} {text}" for name, (_, text) in COMMANDS.items()]
    return "\n".join(["commands:", *lines, "", "Each has its own --help."])
