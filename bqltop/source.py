"""Where samples come from: a live device, a recording, a test."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from bqltop.model import Sample


class Source(Protocol):
    """Anything that yields samples at a pace.

    ``every`` blocks between samples and is run in one thread; ``interval`` (seconds) may be changed from another
    thread at any time and takes effect with the next sample; ``close`` may be called from another thread and ends
    the iteration.
    """

    interval: float
    description: str

    def every(self, interval_s: float) -> Iterator[Sample]: ...

    def close(self) -> None: ...
