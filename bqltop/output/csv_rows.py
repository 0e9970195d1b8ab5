"""``--csv``: flat, one row per queue and window. The columns are the queue's figures of bqltop.fields, in that order.

Booleans are ``true``/``false``, a value that is not to be had is an empty cell, histograms are left out. A figure that
sample and window both have (``tx_timeouts``) carries ``window_`` before its name for the window's.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Mapping

from bqltop import fields
from bqltop import format as fmt
from bqltop.model import Sample
from bqltop.window import Window

LEADING = ("time", "time_ns", "device", "ifindex", "netns", "seconds")

_SAMPLE = tuple(f for f in fields.of("queue", "sample") if f.kind != "histogram")
_WINDOW = tuple(f for f in fields.of("queue", "window") if f.kind != "histogram")
_SAMPLE_IDS = {f.id for f in _SAMPLE}

HEADER = (
    *LEADING,
    *(f.id for f in _SAMPLE),
    *(f"window_{f.id}" if f.id in _SAMPLE_IDS else f.id for f in _WINDOW),
)


def _cell(value: object) -> object:
    return "" if value is None else str(value).lower() if isinstance(value, bool) else value


def rows(sample: Sample, window: Window | None) -> Iterator[list[object]]:
    """The rows of one window; none where there is no window."""
    if window is None:
        return
    device = sample.device
    leading = [fmt.timestamp(sample.time_ns), sample.time_ns, device.name, device.ifindex, device.netns, window.seconds]
    for queue, rates in zip(sample.queues, window.queues, strict=True):
        figures = [fields.value(queue, f) for f in _SAMPLE] + [fields.value(rates, f) for f in _WINDOW]
        yield [_cell(value) for value in leading + figures]


def writer(streams: Mapping[int, Sample] | None = None) -> Callable[[Sample, Window | None], str]:
    """A writer that begins with the header."""
    started = False

    def write(sample: Sample, window: Window | None) -> str:
        nonlocal started
        text = io.StringIO()
        table = csv.writer(text, lineterminator="\n")
        if not started:
            table.writerow(HEADER)
            started = True
        table.writerows(rows(sample, window))
        return text.getvalue()

    return write
