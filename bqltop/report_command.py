"""Print a recording as a report: set-up, what changed when, figures with percentiles, verdicts, distributions. Markdown, fit
for a mail."""

from __future__ import annotations

import argparse
import contextlib
import sys

from bqltop.fault import Fault
from bqltop.output import put, quiet_exit
from bqltop.recording import Recording, RecordingError
from bqltop.recording.when import EXAMPLES
from bqltop.report import NoSamples, report


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="a recording (docs/recording.md)")
    parser.add_argument("--from", dest="start", metavar="TIME", help=f"from there on: {EXAMPLES}")
    parser.add_argument("--to", dest="end", metavar="TIME", help="up to there")


def run(arguments: argparse.Namespace) -> int:
    """The exit status: 0. Raises Fault where the file or a time is wrong."""
    try:
        with Recording(arguments.file) as recording:
            text = _of(recording, arguments)
    except ValueError as error:
        raise Fault(str(error)) from None
    try:
        put(sys.stdout, text)
    except BrokenPipeError:
        quiet_exit(sys.stdout)
    return 0


def _of(recording: Recording, arguments: argparse.Namespace) -> str:
    """One report for each device of the recording. A sample that cannot be read ends it there, with a note."""
    timeline = recording.timeline
    first = timeline.first_from(arguments.start) if arguments.start is not None else 0
    last = timeline.last_to(arguments.end) if arguments.end is not None else len(recording) - 1
    to_the_end = last == len(recording) - 1
    texts = []
    for stream in recording.streams:
        reading = _Reading(recording, range(first, last + 1), stream)
        with contextlib.suppress(NoSamples):  # another device may have some
            texts.append(report(reading, recording.header, recording.notice,
                                recording.trailing(stream) if to_the_end else ()))
        if reading.error:
            texts.append(f"({reading.error}; the report ends there.)\n")
    if not texts:
        raise NoSamples
    return "\n".join(texts)


class _Reading:
    """The samples of one device, up to the first that cannot be read; ``error`` is then the reason."""

    def __init__(self, recording: Recording, numbers: range, stream: int) -> None:
        self._recording, self._numbers, self._stream = recording, numbers, stream
        self.error: RecordingError | None = None

    def __iter__(self):
        try:
            for number in self._numbers:
                sample = self._recording.sample(number)
                if sample.stream == self._stream:
                    yield sample
        except RecordingError as error:
            self.error = error
