"""Samples for machines and for pipes: JSON lines, CSV, text and Prometheus. Nothing here asks the kernel.

``run`` drives a source (anything with ``every(interval_s) -> Iterator[Sample]``: a sampler, a replay) and a writer.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TextIO

from bqltop.model import Sample
from bqltop.output import csv_rows, json_lines, text_lines
from bqltop.source import Source
from bqltop.stdio import OutputError, discard
from bqltop.window import Window, between

ONCE_SECONDS = 0.2
"""Length of the one window that ``--once`` shows: long enough for rates, short enough not to be waited for."""

INTERRUPTED = 130
"""Exit status after Ctrl-C, as the shell counts it (128 + SIGINT)."""

Write = Callable[[Sample, Window | None], str]
WRITERS: dict[str, Callable[[Mapping[int, Sample]], Write]] = {
    "json": json_lines.writer,
    "csv": csv_rows.writer,
    "text": text_lines.writer,
}


class Windows:
    """Every sample but each device's first with the window that it ends; None for the window where the two must not be
    compared (the device was away or made anew). ``streams`` holds the last sample of each device of the run."""

    def __init__(self, samples: Iterable[Sample]) -> None:
        self._samples = samples
        self.streams: dict[int, Sample] = {}

    def __iter__(self) -> Iterator[tuple[Sample, Window | None]]:
        for newer in self._samples:
            older, self.streams[newer.stream] = self.streams.get(newer.stream), newer
            if older is not None:
                yield newer, between(older, newer)


def run(
    format: str,
    source: Source,
    out: TextIO | None = None,
    count: int | None = None,
    interval: float = 1.0,
    once: bool = False,
) -> int:
    """Write a source's samples to ``out`` (standard output) until ``count`` of each device are written, the source ends, the
    reader goes away or Ctrl-C. ``interval`` is in seconds. ``once`` is one sample over a short window.

    Returns the exit status: 0, also when the reader closed the pipe, or 130 after Ctrl-C. Raises OutputError where
    ``out`` cannot be written (a full disk); errors of the source come through.
    """
    out = sys.stdout if out is None else out
    count, interval = (1, min(interval, ONCE_SECONDS)) if once else (count, interval)
    windows = Windows(source.every(interval))
    write = WRITERS[format](windows.streams)
    written = 0
    try:
        for sample, window in windows:
            put(out, write(sample, window))
            written += 1
            if count is not None and written >= count * len(windows.streams):
                break
    except BrokenPipeError:
        quiet_exit(out)
    except KeyboardInterrupt:
        return INTERRUPTED
    return 0


def put(out: TextIO, text: str) -> None:
    """Write and flush. BrokenPipeError where the reader has gone, OutputError for everything else that prevents it."""
    if hasattr(out, "reconfigure") and out.errors != "backslashreplace":
        out.reconfigure(errors="backslashreplace")  # a device's name need not be in the terminal's encoding
    try:
        out.write(text)
        out.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        quiet_exit(out)
        raise OutputError(f"cannot write the output: {error.strerror or error}") from None


def quiet_exit(out: TextIO) -> None:
    """Point a broken pipe's descriptor at /dev/null, if it is a real file."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        discard(out.fileno())
