"""Fixtures of the screen's tests: a fixed time zone, and an application whose samples come from the test itself."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest
from fake_source import FakeSource

from bqltop.model import Sample
from bqltop.tui import BqltopApp


@pytest.fixture(autouse=True)
def _utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Clocks on the screen show local time; snapshots need one that is the same everywhere, and colours on."""
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.delenv("NO_COLOR", raising=False)
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


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


@pytest.fixture
def fed_app():
    """``fed_app("veth", 64, ebpf=False)``: an application on that made-up device."""
    return lambda scenario="veth", queues=1, **options: FedApp(FakeSource(scenario, queues, **options))
