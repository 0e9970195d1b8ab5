"""Writing a recording: JSON lines, gzip, rotation, and what happens when the disk is full.

The file is one gzip stream that is flushed every second (Z_SYNC_FLUSH), so that a file cut off at any byte can be
unpacked up to about a second before the cut, by ``zcat`` as by bqltop. A name that ends in ``.jsonl`` or ``.json`` is
written uncompressed.
"""

from __future__ import annotations

import contextlib
import os
import queue
import threading
import time
import zlib
from collections.abc import Iterator
from pathlib import Path

from bqltop import __version__
from bqltop.files import must_be_ordinary
from bqltop.model import SCHEMA, Event, Sample
from bqltop.recording import jsonline
from bqltop.recording.codec import record_to_dict, to_dict
from bqltop.recording.errors import RecordingError

FORMAT = 1
"""Version of the file's layout (which lines there are), beside the schema of the samples in it."""

FLUSH_S = 1.0
LEVEL = 1
"""gzip level. Measured on 64 busy queues: level 1 takes 7 ms and 26 kB a sample, level 6 takes 12 ms and 21 kB."""

BACKLOG = 600
"""Lines that may wait for a slow disk: a minute at 10 Hz. What comes beyond is counted as lost, never waited for."""

CLOSED = "closed"
"""``Recorder.stopped`` of one that was ended and is whole."""

PATIENCE_S = 5.0
"""How long ``close`` waits for a hanging disk."""

SUFFIXES = (".jsonl.gz", ".json.gz", ".gz", ".jsonl", ".json")
KEEP = 9


def numbered(path: Path, number: int) -> Path:
    """The name of the ``number``-th older file of a rotation: x.jsonl.gz -> x.1.jsonl.gz."""
    suffix = next((suffix for suffix in SUFFIXES if path.name.endswith(suffix) and path.name != suffix), "")
    return path.with_name(f"{path.name.removesuffix(suffix)}.{number}{suffix}")


def rotate(path: Path, keep: int) -> None:
    """Move ``path`` to its number 1 and every older one up by one; the ``keep``-th is overwritten. OSError."""
    for number in range(keep - 1, 0, -1):
        with contextlib.suppress(FileNotFoundError):
            numbered(path, number).replace(numbered(path, number + 1))
    path.replace(numbered(path, 1))


class LineFile:
    """One file of lines, compressed or not. Raises OSError; unbuffered, so that a failing write leaves no second
    error for later."""

    def __init__(self, path: Path) -> None:
        self._file = open(path, "xb", buffering=0)  # noqa: SIM115 - closed by close()
        packed = not path.name.endswith((".jsonl", ".json"))
        self._packer = zlib.compressobj(LEVEL, zlib.DEFLATED, zlib.MAX_WBITS | 16) if packed else None
        self.size = 0

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[self._file.write(view) :]
        self.size += len(data)

    def write(self, line: str) -> None:
        data = line.encode("ascii") + b"\n"
        self._write(self._packer.compress(data) if self._packer else data)

    def flush(self) -> None:
        """Bring everything so far within reach of a reader of the unfinished file."""
        if self._packer:
            self._write(self._packer.flush(zlib.Z_SYNC_FLUSH))

    def close(self) -> None:
        try:
            if self._packer:
                self._write(self._packer.flush(zlib.Z_FINISH))
        finally:
            self._file.close()

    def abandon(self) -> None:
        """Let go of it as it is: after a write that failed, nothing may follow, or the whole would not unpack."""
        self._packer = None
        self._file.close()


class Writer:
    """Header, lines and rotation, in the caller's thread. ``max_bytes`` is of the file as it lies on disk, ``max_age_s``
    in seconds; without either the file just grows, and an existing one is refused instead of moved away."""

    def __init__(self, path: Path, about: dict | None = None, max_bytes: int | None = None, max_age_s: float | None = None,
                 keep: int = KEEP) -> None:
        self.path, self._about = path, about or {}
        self._max_bytes, self._max_age_s, self._keep = max_bytes, max_age_s, max(1, keep)
        self._file: LineFile | None = None
        if path.exists() and (max_bytes or max_age_s):
            must_be_ordinary(path)
            rotate(path, self._keep)
        self._open()

    def _open(self) -> None:
        self._file = LineFile(self.path)
        self._opened = self._flushed = time.monotonic()
        header = {"recording": FORMAT, "schema": SCHEMA, "time_ns": time.time_ns(), "bqltop": __version__, "about": self._about}
        try:
            self._file.write(jsonline.dumps(header))
            self._file.flush()
        except OSError:  # a full disk: no empty file may stand in the way of the next attempt
            with contextlib.suppress(OSError):
                self._file.close()
            self.path.unlink(missing_ok=True)
            raise

    def write(self, line: str) -> None:
        """Add a line; flush and rotate when it is time. Raises OSError."""
        now = time.monotonic()
        if self._due(now):
            self._file.close()
            rotate(self.path, self._keep)
            self._open()
        self._file.write(line)
        if now - self._flushed >= FLUSH_S:
            self._file.flush()
            self._flushed = now

    def _due(self, now: float) -> bool:
        too_big = self._max_bytes is not None and self._file.size >= self._max_bytes
        return too_big or (self._max_age_s is not None and now - self._opened >= self._max_age_s)

    @property
    def size(self) -> int:
        """Bytes of the present file on disk."""
        return self._file.size

    def flush(self) -> None:
        self._file.flush()
        self._flushed = time.monotonic()

    def close(self) -> None:
        self._file.close()

    def abandon(self) -> None:
        """Close it after an error."""
        self._file.abandon()


class Recorder:
    """Takes samples and events and writes them from a thread of its own: a slow or full disk never holds up the
    monitor.

    ``stopped`` is None while it records, else one line that says why it stopped; ``failure`` is the same where that was not
    its regular end. ``lost`` counts samples and events that a slow disk left no room for. ``about`` goes to the file's
    header (kernel release, load, ...).
    Raises RecordingError where the file cannot be begun.
    """

    def __init__(self, path: str | os.PathLike, *, about: dict | None = None, max_bytes: int | None = None,
                 max_age_s: float | None = None, keep: int = KEEP) -> None:
        self.path = Path(path)
        try:
            self._writer = Writer(self.path, about, max_bytes, max_age_s, keep)
        except FileExistsError:
            raise RecordingError(f"{path} exists already: choose another name, or remove it") from None
        except OSError as error:
            raise RecordingError(f"cannot record to {path}: {error.strerror or error}") from None
        self.stopped: str | None = None
        self.lost = 0
        self.samples = 0
        self._waiting: queue.Queue[Sample | tuple[Event, int | None] | None] = queue.Queue(BACKLOG)
        self._thread = threading.Thread(target=self._work, name="bqltop recorder", daemon=True)
        self._thread.start()

    def sample(self, sample: Sample) -> None:
        """Record a sample. Returns at once, whatever the disk does."""
        self._put(sample)

    def event(self, event: Event, stream: int | None = None) -> None:
        """Record an event that is not already among a sample's own. ``stream``: whose, where several devices are recorded."""
        self._put((event, stream))

    def _put(self, item: Sample | tuple[Event, int | None]) -> None:
        if self.stopped is not None:
            return
        try:
            self._waiting.put_nowait(item)
        except queue.Full:
            self.lost += 1

    @property
    def size(self) -> int:
        """Bytes of the present file on disk."""
        return self._writer.size

    def close(self) -> None:
        """Write what is waiting and finish the file; give up on a disk that hangs. Never raises: what went wrong is in
        ``stopped``."""
        if self._thread.is_alive():
            with contextlib.suppress(queue.Full):
                self._waiting.put(None, timeout=PATIENCE_S)
            self._thread.join(PATIENCE_S)
        if self._thread.is_alive() and self.stopped is None:
            self.stopped = f"recording to {self.path} stopped: the disk hangs, and the last samples may not be on it"
        self.stopped = self.stopped or CLOSED

    @property
    def failure(self) -> str | None:
        """Why it stopped before its time."""
        return None if self.stopped == CLOSED else self.stopped

    def __enter__(self) -> Recorder:
        return self

    def __exit__(self, *_exception) -> None:
        self.close()

    def _work(self) -> None:
        try:
            for line in self._lines():
                if line is None:
                    self._writer.flush()
                else:
                    self._writer.write(line)
            self._writer.close()
        except Exception as error:  # whatever it is: the monitor goes on and the user is told
            self.stopped = f"recording to {self.path} stopped: {getattr(error, 'strerror', None) or error}"
            with contextlib.suppress(OSError):
                self._writer.abandon()
            self._drain()

    def _lines(self) -> Iterator[str | None]:
        """Lines to write as they come; None when nothing came for a second, so that the last ones reach the file."""
        quiet = False
        while True:
            try:
                item = self._waiting.get(timeout=None if quiet else FLUSH_S)
            except queue.Empty:
                quiet = True
                yield None
                continue
            if item is None:
                return
            quiet = False
            if isinstance(item, tuple):
                event, stream = item
                yield jsonline.dumps({"event": record_to_dict(event)} | ({} if stream is None else {"stream": stream}))
            else:
                self.samples += 1
                yield jsonline.dumps(to_dict(item, with_window=False))

    def _drain(self) -> None:
        """Empty the queue after a failure, so that ``close`` need not wait for room in it."""
        while not self._waiting.empty():
            with contextlib.suppress(queue.Empty):
                self._waiting.get_nowait()
