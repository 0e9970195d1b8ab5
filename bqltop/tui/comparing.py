"""Brings A and B into the application: one comparison for each device of the run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bqltop.compare import Comparison
from bqltop.model import Sample
from bqltop.tui.screens.compare import CompareScreen

if TYPE_CHECKING:
    from bqltop.tui.app import BqltopApp


class Comparing:
    """``take`` hears every sample of every device; ``mark`` and ``show`` are the keys b and B."""

    def __init__(self, app: BqltopApp) -> None:
        self._app = app
        self._comparisons: dict[int, Comparison] = {}

    def take(self, sample: Sample) -> None:
        if sample.stream in self._comparisons:
            self._comparisons[sample.stream].add(sample)

    @property
    def shown(self) -> Comparison:
        """That of the device on the screen."""
        return self._comparisons.setdefault(self._app.stream, Comparison())

    def mark(self) -> None:
        """Begin A, or the other letter."""
        sample = self._app.feed.sample
        if sample is None:
            return
        letter = self.shown.mark(sample.monotonic_ns)
        after = "change something and press b again for B" if letter == "A" else "b: back to A; B: the table"
        self._app.live.say(f"{letter} is measured from now on; {after}")

    def show(self) -> None:
        """The table."""
        self._app.push_screen(CompareScreen(self.shown, self._app.live.view.selected))

    def forget(self, stream: int) -> None:
        """A device is not watched any more."""
        self._comparisons.pop(stream, None)
