"""One thread that waits for samples and only posts messages: nothing is drawn or decided in it."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

from textual.message import Message

from bqltop.model import Sample
from bqltop.tui.messages import SamplesArrived, SourceEnded


class Watcher:
    """Runs ``source.every`` in a thread of its own. Samples wait in ``inbox``, so that none is lost when messages
    replace each other."""

    def __init__(self, source, interval_s: float, post: Callable[[Message], object]) -> None:
        self.source = source
        self._interval_s = interval_s
        self._post = post
        self._inbox: deque[Sample] = deque()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="bqltop-watcher", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def drain(self) -> list[Sample]:
        """The samples that have come since the last call, oldest first."""
        samples = []
        while self._inbox:
            samples.append(self._inbox.popleft())
        return samples

    def stop(self) -> None:
        """End the thread after the sample it is at; does not wait for it."""
        self._stop.set()

    def join(self, timeout_s: float) -> bool:
        """Wait for the thread; False when it is still there."""
        if self._thread.ident is not None:
            self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        error: Exception | None = None
        try:
            for sample in self.source.every(self._interval_s):
                if self._stop.is_set():
                    return
                self._inbox.append(sample)
                self._post(SamplesArrived())
        except Exception as caught:
            # The message carries it to the main thread, which ends the application with it.
            error = caught
        if not self._stop.is_set():
            self._post(SourceEnded(error))
