"""Fixtures of the screen's tests: a fixed time zone, and an application to feed by hand."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from fake_source import FakeSource
from fed import FedApp


@pytest.fixture(autouse=True)
def _utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Clocks on the screen show local time; snapshots need one that is the same everywhere, and colours on."""
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.delenv("NO_COLOR", raising=False)
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.fixture
def fed_app():
    """``fed_app("veth", 64, ebpf=False)``: an application on that made-up device."""
    return lambda scenario="veth", queues=1, **options: FedApp(FakeSource(scenario, queues, **options))
