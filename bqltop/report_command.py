"""Print a recording as a report: set-up, what changed when, figures with percentiles, verdicts, distributions. Markdown, fit
for a mail."""

from __future__ import annotations

import argparse
import sys

from bqltop.fault import Fault
from bqltop.output import put, quiet_exit
from bqltop.recording import Recording, RecordingError
from bqltop.recording.when import EXAMPLES, moment
from bqltop.report import report


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
    span = recording.times[0], recording.times[-1]
    start = moment(arguments.start, span) if arguments.start is not None else None
    end = moment(arguments.end, span) if arguments.end is not None else None
    trailing = recording.trailing if end is None else ()
    texts = []
    for stream in _streams(recording):
        reading = _Reading(recording, start, end, stream)
        texts.append(report(reading, recording.header, recording.notice, trailing))
        if reading.error:
            texts.append(f"({reading.error}; the report ends there.)\n")
    return "\n".join(texts)


def _streams(recording: Recording) -> list[int]:
    """The devices of a recording, by the samples of its first moments."""
    last = recording.moments[min(3, len(recording.moments) - 1)]
    return sorted({recording.sample(number).stream for number in range(max(1, last))})


class _Reading:
    """The samples of one device, up to the first that cannot be read; ``error`` is then the reason."""

    def __init__(self, recording: Recording, start: int | None, end: int | None, stream: int) -> None:
        self._recording, self._start, self._end, self._stream = recording, start, end, stream
        self.error: RecordingError | None = None

    def __iter__(self):
        try:
            for sample in self._recording.samples(self._start, self._end):
                if sample.stream == self._stream:
                    yield sample
        except RecordingError as error:
            self.error = error
