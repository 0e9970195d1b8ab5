"""Reading a recording: random access to the samples of a file that anybody may have written.

Opening reads the file once and notes where every line begins; samples are decoded when asked for. Any gzip or plain
JSON-lines file does, also the output of ``--json`` itself and a file that was unpacked, edited and packed again. A
file that was cut off gives all its whole lines. Damage further on ends the recording there, and ``notice`` says so.
Imports nothing that needs Linux or root.
"""

from __future__ import annotations

import contextlib
import os
import re
import threading
import zlib
from array import array
from bisect import bisect_left, bisect_right, insort
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from bqltop.clock import Instant, passed_ns
from bqltop.model import Device, Event, Sample
from bqltop.recording import jsonline
from bqltop.recording.codec import DecodeError, check_schema, event_from_dict, from_dict
from bqltop.recording.errors import RecordingError
from bqltop.recording.when import Timeline

CHUNK = 1 << 18
MAX_LINE = 32 << 20
"""Longest line read: a sample of 4096 queues has a quarter of that. Keeps a packed terabyte of zeros from filling memory."""
BLOCK = 1 << 20
"""Text between two checkpoints of a packed file, at first; doubled whenever there would be more than CHECKPOINTS."""
CHECKPOINTS = 256
SEGMENT = 1 << 20
"""Text kept unpacked as one piece. What is kept does not grow with the file, and neither does what a hostile one may take."""
CACHED_SEGMENTS = 16
MAX_EVENTS = 10_000
MAX_STREAMS, MAX_STREAM = 256, 10**9
MAX_TIME = 1 << 63

_SAMPLE = re.compile(
    rb'\{"schema":(\d{1,9}),"time_ns":(-?\d{1,19}),(?:"stream":(\d{1,9}),)?"monotonic_ns":(-?\d{1,19})[,}]'
)


@dataclass(slots=True)
class Checkpoint:
    """A place from where unpacking can start: offsets in the text and in the file, and the unpacker's state there."""

    text: int
    file: int
    unpacker: object | None


class Text:
    """The text of a plain or gzip file by offset. ``read`` runs through all of it once and sets checkpoints."""

    def __init__(self, path: Path) -> None:
        self._file = open(path, "rb")  # noqa: SIM115 - closed by close()
        self._packed = self._file.read(2) == b"\x1f\x8b"
        self._checkpoints: list[Checkpoint] = []
        self._spacing = BLOCK
        self._segments: OrderedDict[int, bytes] = OrderedDict()
        self._running: Iterator[tuple[int, bytes]] | None = None
        self._coming = 0

    def close(self) -> None:
        self._file.close()

    def read(self) -> Iterator[bytes]:
        """The whole text in pieces. Raises zlib.error where the packed data is damaged; a cut is just an end."""
        text, marked = 0, None
        for piece, file, unpacker in self._pieces(0, self._fresh()):
            if marked is None or text - marked >= self._spacing:
                self._mark(Checkpoint(text, file, unpacker.copy() if unpacker else None))
                marked = text
            text += len(piece[0])
            yield piece[0]

    def _fresh(self):
        return zlib.decompressobj(zlib.MAX_WBITS | 16) if self._packed else None

    def _pieces(self, file: int, unpacker) -> Iterator[tuple[list[bytes], int, object]]:
        """Unpacked pieces (in a list of one), each with the place in the file and the unpacker's state it was made from."""
        self._file.seek(file)
        while data := self._file.read(CHUNK):
            if unpacker is None:
                yield [data], file, None
                file += len(data)
                continue
            full = False
            while data or full:  # a full piece may have left more to come inside the unpacker
                box: list[bytes] = []
                before = unpacker.copy()
                try:
                    box.append(unpacker.decompress(data, CHUNK))
                except zlib.error:
                    yield [_up_to_damage(before.copy(), data)], file, before
                    raise
                rest = unpacker.unconsumed_tail or unpacker.unused_data
                yield box, file, before
                file += len(data) - len(rest)
                full, data = len(box[0]) == CHUNK, rest
                if unpacker.eof:
                    unpacker, full = self._fresh(), False

    def _mark(self, checkpoint: Checkpoint) -> None:
        self._checkpoints.append(checkpoint)
        if len(self._checkpoints) > CHECKPOINTS:
            self._checkpoints = self._checkpoints[::2]
            self._spacing *= 2

    def at(self, start: int, end: int) -> bytes:
        """The text from ``start`` to ``end``."""
        if not self._packed:
            self._file.seek(start)
            return self._file.read(end - start)
        numbers = range(start // SEGMENT, max(start, end - 1) // SEGMENT + 1)
        text = b"".join(map(self._segment, numbers))
        return text[start - numbers[0] * SEGMENT : end - numbers[0] * SEGMENT]

    def _segment(self, number: int) -> bytes:
        """One SEGMENT of a packed file's text, from a small cache: a replay reads on, and a cursor goes back a little."""
        if number not in self._segments:
            here = self._checkpoints[bisect_right(self._checkpoints, number * SEGMENT, key=lambda c: c.text) - 1]
            if self._running is None or not -(-here.text // SEGMENT) <= self._coming <= number:
                self._running = self._unpacked(here)
            for found, text in self._running:
                self._segments[found], self._coming = text, found + 1
                while len(self._segments) > CACHED_SEGMENTS:
                    self._segments.popitem(last=False)
                if found >= number:
                    break
        self._segments.move_to_end(number)
        return self._segments[number]

    def _unpacked(self, here: Checkpoint) -> Iterator[tuple[int, bytes]]:
        """The segments from a checkpoint on, by number; the last one as far as it goes."""
        number, text = -(-here.text // SEGMENT), bytearray()
        skip = number * SEGMENT - here.text
        with contextlib.suppress(zlib.error):  # only past the last whole line, which is as far as the index goes
            for piece, _, _ in self._pieces(here.file, here.unpacker.copy()):
                text += piece[0][skip:]
                skip = max(0, skip - len(piece[0]))
                while len(text) >= SEGMENT:
                    yield number, bytes(text[:SEGMENT])
                    del text[:SEGMENT]
                    number += 1
        yield number, bytes(text)


def _up_to_damage(unpacker, data: bytes) -> bytes:
    """What can be unpacked of damaged data."""
    parts: list[bytes] = []
    with contextlib.suppress(zlib.error):
        for place in range(len(data)):
            parts.append(unpacker.decompress(data[place : place + 1], CHUNK))
    return b"".join(parts)


class Recording:
    """The samples of a file by number, and the events between them.

    A recording of several devices holds a sample of each per moment (``Sample.stream`` tells them apart). ``moments`` are
    the numbers of each moment's first sample; with one device every sample is a moment.

    ``times`` are the samples' wall-clock times in ns, made to never go back: to find a time of day by. ``elapsed`` is ns
    since the first sample by the monotonic clock: somebody may have set the other. ``marks`` are the numbers of the samples that
    carry an event; ``streams`` the devices' numbers, ``stream_of`` that of each sample.
    ``notice`` is None or one line about what is wrong
    with the file's end. Raises RecordingError for a file that is none, holds no sample, or is from a newer version.
    Any thread may ask for samples.
    """

    def __init__(self, path: str | os.PathLike) -> None:
        self.path = Path(path)
        self._lock = threading.Lock()
        self.header: dict = {}
        self.notice: str | None = None
        self.times, self.elapsed, self._walls = array("q"), array("q"), array("q")
        self._instant: Instant = (0, 0)
        self.marks = array("L")
        self.moments = array("L")
        self._stream = 0
        self._starts, self._ends = array("Q"), array("Q")
        self.streams: list[int] = []
        self.stream_of = array("L")
        self._events: dict[int, list[Event]] = {}
        self._carriers: dict[int, tuple[Event, ...] | None] = {}
        self._pending: dict[int | None, list[Event]] = {}
        self._pending_count = 0
        try:
            self._text = Text(self.path)
        except OSError as error:
            raise RecordingError(f"cannot read {path}: {error.strerror or error}") from None
        try:
            self._index()
            self.first = self._first()
        except BaseException:
            self._text.close()
            raise

    def close(self) -> None:
        with self._lock:
            self._text.close()

    def __enter__(self) -> Recording:
        return self

    def __exit__(self, *_exception) -> None:
        self.close()

    def __len__(self) -> int:
        return len(self.times)

    @property
    def device(self) -> Device:
        """The device as the first sample has it."""
        return self.first.device

    def sample(self, number: int) -> Sample:
        """The sample of that number (0 is the first), with the events that were recorded since the one before. Raises
        RecordingError where the line does not hold what it should."""
        try:
            with self._lock:
                line = self._text.at(self._starts[number], self._ends[number])
        except (OSError, ValueError, KeyError, zlib.error):  # closed, or changed under our hands
            raise RecordingError(f"{self.path}: sample {number + 1} cannot be read any more") from None
        try:
            sample = from_dict(jsonline.loads(line))
        except DecodeError as error:
            raise RecordingError(f"{self.path}: sample {number + 1}: {error}") from None
        events = self._events.get(number)
        return replace(sample, events=(*events, *sample.events)) if events else sample

    def events(self, number: int) -> tuple[Event, ...]:
        """The events that ``sample`` has; only those a sample itself carries are read from the file, and but once. Raises
        RecordingError."""
        if number not in self._carriers:
            return tuple(self._events.get(number, ()))
        if self._carriers[number] is None:
            self._carriers[number] = self.sample(number).events
        return self._carriers[number]

    def samples(self, start_ns: int | None = None, end_ns: int | None = None) -> Iterator[Sample]:
        """The samples from one wall-clock time to another, both included."""
        first = 0 if start_ns is None else bisect_left(self.times, start_ns)
        last = len(self) if end_ns is None else bisect_right(self.times, end_ns)
        return (self.sample(number) for number in range(first, last))

    def number_at(self, time_ns: int) -> int:
        """The number of the last sample not after ``time_ns``; 0 for a time before the first."""
        return max(0, bisect_right(self.times, time_ns) - 1)

    def trailing(self, stream: int) -> list[Event]:
        """Events of a device after its last sample."""
        whose = (None, stream) if stream == self.streams[0] else (stream,)
        return [event for each in whose for event in self._pending.get(each, ())]

    @property
    def timeline(self) -> Timeline:
        """When the samples were taken."""
        return Timeline(self._walls, self.elapsed)

    # ---- the index

    def _first(self) -> Sample:
        if not len(self):
            raise RecordingError(f"{self.path}: {self.notice or 'no recording of bqltop: there is no sample in it'}")
        return self.sample(0)

    def _index(self) -> None:
        start, rest = 0, b""
        try:
            for piece in self._text.read():
                rest += piece
                if len(rest) > MAX_LINE and b"\n" not in piece:
                    raise DecodeError(f"a line is longer than {MAX_LINE >> 20} MiB")
                *lines, rest = rest.split(b"\n")
                for line in lines:
                    self._note(line, start)
                    start += len(line) + 1
            self._end(rest, start)
        except zlib.error:
            self.notice = "damaged: the file cannot be unpacked any further"
        except OSError as error:
            self.notice = f"cannot be read any further: {error.strerror or error}"
        except DecodeError as error:
            self.notice = f"damaged: {error}"

    def _end(self, rest: bytes, start: int) -> None:
        """A last line without its newline: whole if it is JSON (an object that is cut off never is)."""
        try:
            if rest.strip():
                jsonline.loads(rest)
        except DecodeError:
            self.notice = "cut off: its last line is not whole"
            return
        self._note(rest, start)

    def _note(self, line: bytes, start: int) -> None:
        """Take one line into the index. Only its beginning is looked at where bqltop wrote it."""
        found = _SAMPLE.match(line)
        if found:
            instant = int(found[2]), int(found[4])
            self._note_sample(int(found[1]), instant, int(found[3] or 0), b'"events":[{' in line, start, len(line))
            return
        if not line.strip():
            return
        try:
            plain = jsonline.loads(line)
        except DecodeError:
            raise DecodeError(f"line at byte {start} is not JSON") from None
        if not isinstance(plain, dict):
            raise DecodeError(f"line at byte {start} is no object")
        if "recording" in plain:
            self._check(plain.get("schema"))
            self.header = self.header or plain
        elif "event" in plain:
            if self._pending_count >= MAX_EVENTS:
                raise DecodeError(f"more than {MAX_EVENTS} events between two samples")
            stream = plain.get("stream")
            if stream is not None and type(stream) is not int:
                raise DecodeError(f"line at byte {start} has no stream")
            self._pending.setdefault(stream, []).append(event_from_dict(plain["event"]))
            self._pending_count += 1
        elif "queues" in plain:  # a sample whose names are in another order: somebody edited the file
            instant = plain.get("time_ns"), plain.get("monotonic_ns")
            stream = plain.get("stream", 0)
            self._note_sample(plain.get("schema"), instant, stream, bool(plain.get("events")), start, len(line))

    def _note_sample(self, schema: object, instant: Instant, stream: int, eventful: bool, start: int, length: int) -> None:
        self._check(schema)
        if not all(type(time) is int and -MAX_TIME <= time < MAX_TIME for time in instant):
            raise DecodeError(f"line at byte {start} has no time")
        if type(stream) is not int or not 0 <= stream < MAX_STREAM:
            raise DecodeError(f"line at byte {start} has no stream")
        if stream not in self.streams:
            if len(self.streams) == MAX_STREAMS:
                raise DecodeError(f"more than {MAX_STREAMS} devices")
            insort(self.streams, stream)
        number = len(self.times)
        self._note_time(instant)
        self._starts.append(start)
        self._ends.append(start + length)
        if not number or stream <= self._stream:
            self.moments.append(number)
        self._stream = stream
        self.stream_of.append(stream)
        if eventful:
            self._carriers[number] = None
        events = [event for whose in (None, stream) for event in self._pending.pop(whose, ())]
        if events:
            self._events[number] = events
            self._pending_count -= len(events)
            eventful = True
        if eventful:
            self.marks.append(number)

    def _note_time(self, instant: Instant) -> None:
        before, self._instant = self._instant, instant
        self._walls.append(instant[0])
        if not self.times:
            self.times.append(instant[0])
            self.elapsed.append(0)
            return
        self.times.append(max(instant[0], self.times[-1]))
        self.elapsed.append(min(self.elapsed[-1] + passed_ns(before, instant), MAX_TIME - 1))

    def _check(self, schema: object) -> None:
        """A newer schema is an error when the file begins with it, and the end of the recording further on."""
        try:
            check_schema(schema)
        except DecodeError as error:
            if not len(self):
                raise RecordingError(f"{self.path}: {error}") from None
            raise
