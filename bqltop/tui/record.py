"""``r``: begin a recording of everything that is watched, and end it. No Textual in here."""

from __future__ import annotations

import re
import time
from pathlib import Path

from bqltop import format as fmt
from bqltop.model import Event, Sample
from bqltop.recording.errors import RecordingError
from bqltop.recording.options import about
from bqltop.recording.tee import Recorded
from bqltop.recording.writer import Recorder


class RecordKey:
    """At most one recording begun from the screen; ``source`` may be recording already (--record). ``settings`` False:
    changed settings come by ``event``, ours before a sample could take them for somebody else's."""

    def __init__(self, source, folder: Path | None = None, settings: bool = True) -> None:
        self._source = source
        self._folder = folder
        self._settings = settings
        if isinstance(source, Recorded):
            source.settings = settings
        self._running: Recorded | None = None

    def toggle(self, device: str) -> str:
        """Begin a recording in the present folder, or end the one that runs; one line that says which."""
        if isinstance(self._source, Recorded):
            return f"--record writes to {self._source.recorder.path} until the end"
        if self._running is not None:
            return self.end() or ""
        path = (self._folder or Path.cwd()) / file_name(device, time.strftime("%Y%m%d-%H%M%S"))
        try:
            self._running = Recorded(self._source, Recorder(path, about=about()), settings=self._settings)
        except RecordingError as error:
            return str(error)
        return f"recording to {path}; r ends it"

    def take(self, sample: Sample) -> str | None:
        """Record a sample. One line when the recording has stopped by itself (a full disk)."""
        if self._running is None:
            return None
        self._running.take(sample)
        stopped = self._running.recorder.stopped
        if stopped:
            self._running = None
        return stopped

    def event(self, event: Event, stream: int) -> None:
        """Record a device's event that is not in the samples (a setting that was changed), also where --record does it."""
        for recording in (self._running, self._source if isinstance(self._source, Recorded) else None):
            if recording is not None:
                recording.event(event, stream)

    def end(self) -> str | None:
        """Finish the file; one line about it, None where nothing was being recorded."""
        running, self._running = self._running, None
        if running is None:
            return None
        recorder = running.recorder
        recorder.close()
        if recorder.failure:
            return recorder.failure
        lost = f", {recorder.lost} lost to a slow disk" if recorder.lost else ""
        return f"{recorder.samples} samples in {recorder.path}{lost}"

    @property
    def badges(self) -> tuple[str, ...]:
        recorded = self._running or (self._source if isinstance(self._source, Recorded) else None)
        if recorded is None or recorded.recorder.stopped:
            return ()
        return (f"REC {fmt.size(recorded.recorder.size)}",)


def file_name(device: str, moment: str) -> str:
    """bqltop-veth0-20261130-140322.jsonl.gz; of a device's name only what is harmless in a file's."""
    return f"bqltop-{re.sub(r'[^A-Za-z0-9._-]', '_', device)}-{moment}.jsonl.gz"
