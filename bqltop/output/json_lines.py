"""``--json``: one compact JSON object per sample and line, as docs/json.md describes."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from bqltop.model import Sample
from bqltop.recording import jsonline
from bqltop.recording.codec import to_dict
from bqltop.window import Window


def line(sample: Sample, window: Window | None) -> str:
    """The sample and its window as one line, the newline included."""
    return jsonline.dumps(to_dict(sample, window)) + "\n"


def writer(streams: Mapping[int, Sample] | None = None) -> Callable[[Sample, Window | None], str]:
    return line
