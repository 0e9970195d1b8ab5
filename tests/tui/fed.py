"""An application whose samples come from the test itself."""

from __future__ import annotations

import threading
from collections.abc import Iterator

from fake_source import FakeSource

from bqltop.model import Sample
from bqltop.tui import BqltopApp


class SilentSource:
    """Yields nothing until it is closed: the test feeds the application by hand."""

    description = "a test"

    def __init__(self) -> None:
        self.interval = 0.1
        self.closed = 0
        self._stop = threading.Event()

    def every(self, interval_s: float) -> Iterator[Sample]:
        self._stop.wait()
        yield from ()

    def close(self) -> None:
        self.closed += 1
        self._stop.set()


class FedApp(BqltopApp):
    """An application with a silent source and a made-up device to feed it from."""

    def __init__(self, fake: FakeSource, **options) -> None:
        super().__init__(SilentSource(), **options)
        self.fake = fake

    def play(self, count: int) -> None:
        """Take ``count`` samples, judging as often as in real life, and draw the last state."""
        for sample in self.fake.samples(count):
            self.take(sample)
            self.feed.frame(self.interval_s)
        self.draw_now()

    async def on_unmount(self) -> None:
        self.source.close()
        self.stop_watching()
