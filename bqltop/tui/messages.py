"""What the watcher thread and the panels tell the application."""

from __future__ import annotations

from dataclasses import dataclass

from textual.message import Message


@dataclass
class SamplesArrived(Message):
    """Samples are waiting in the watcher's inbox. One such message stands for any number of samples."""

    def can_replace(self, message: Message) -> bool:
        return isinstance(message, SamplesArrived)


@dataclass
class SourceEnded(Message):
    """The source has no more samples (``error`` is None), or failed."""

    error: Exception | None = None
