"""A few samples in a row as one small piece of bytes, for memory only: nothing of this is ever read from a file.

The first sample is kept whole. Of the others, the distributions (nine tenths of a sample) are kept as what
their cells grew by.
"""

from __future__ import annotations

import marshal
import sys
import typing
import zlib
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass
from operator import attrgetter

from bqltop.model import Device, NapiSample, Peer, QueueSample, Sample, Unit

LEVEL = 1
"""zlib level. Measured on 64 busy queues: level 6 is 10 % smaller and takes twice the time."""


class _Rows:
    """Records of one class as tuples: their plain values, and apart from them their distributions."""

    def __init__(self, cls: type) -> None:
        self.cls = cls
        names = [f.name for f in fields(cls)]
        self.plain_names = [name for name in names if not name.endswith("_histogram")]
        self.cell_names = [name for name in names if name.endswith("_histogram")]
        self.plain = attrgetter(*self.plain_names)
        self._cells = attrgetter(*self.cell_names) if self.cell_names else None

    def cells(self, record) -> tuple:
        if self._cells is None:
            return ()
        found = self._cells(record)
        return found if len(self.cell_names) > 1 else (found,)

    def record(self, plain: Sequence, cells: Sequence = ()):
        values = dict(zip(self.plain_names, plain, strict=True))
        values.update(zip(self.cell_names, cells, strict=True))
        return self.cls(**values)


class _Taken:
    """Hands out a sample's distributions record by record."""

    def __init__(self, cells: list) -> None:
        self._cells, self._place = cells, 0

    def next(self, rows: _Rows) -> list:
        first, self._place = self._place, self._place + len(rows.cell_names)
        return self._cells[first : self._place]


def _shapes() -> Iterator[tuple[str, type | None, bool]]:
    """(name, class of its records or None, whether there are several) of every field of a Sample."""
    hints = typing.get_type_hints(Sample)
    for f in fields(Sample):
        parts = [part for part in (*typing.get_args(hints[f.name]), hints[f.name]) if is_dataclass(part)]
        yield f.name, parts[0] if parts else None, typing.get_origin(hints[f.name]) is tuple


_QUEUE, _NAPI, _DEVICE, _PEER = (_Rows(cls) for cls in (QueueSample, NapiSample, Device, Peer))
_UNIT_PLACE = _QUEUE.plain_names.index("unit")
_PEER_PLACE = _DEVICE.plain_names.index("peer")
_WITH_CARE = ("device", "queues", "napis")
"""Fields whose records hold others, an enumeration or distributions. All other records are flat."""
_SHAPES = [shape for shape in _shapes() if shape[0] not in _WITH_CARE]
_MANY = {name: _Rows(cls) for name, cls, several in _SHAPES if cls and several}
_ONE = {name: _Rows(cls) for name, cls, several in _SHAPES if cls and not several}
_PLAIN = [name for name, cls, _ in _SHAPES if cls is None]
_CONSTANT = ("probes",)
"""Beside the device: what hardly ever changes, kept once for all samples of a pack that have it in common."""


def pack(samples: Sequence[Sample]) -> bytes:
    """Bytes that ``unpack`` makes the same samples of."""
    packed, before, same = [], {}, None
    for sample in samples:
        many = {name: [rows.plain(record) for record in getattr(sample, name)] for name, rows in _MANY.items()}
        constant = (_device(sample.device), {name: many.pop(name) for name in _CONSTANT})
        one = {name: rows.plain(record) for name, rows in _ONE.items() if (record := getattr(sample, name)) is not None}
        packed.append((
            {name: getattr(sample, name) for name in _PLAIN},
            None if constant == same else constant,
            many,
            one,
            [_queue(queue) for queue in sample.queues],
            [_NAPI.plain(napi) for napi in sample.napis],
            _growths(sample, before),
        ))  # fmt: skip
        same = constant
    return zlib.compress(marshal.dumps(packed), LEVEL)


def unpack(data: bytes | memoryview) -> list[Sample]:
    """The samples that ``pack`` was given."""
    samples, before, constant = [], {}, None
    for plain, changed, many, one, queues, napis, growths in marshal.loads(zlib.decompress(data)):
        constant = changed or constant
        cells = _Taken(_grown(growths, before))
        device, shared = constant
        samples.append(Sample(
            device=_device_back(device),
            queues=tuple(_QUEUE.record(_queue_back(row), cells.next(_QUEUE)) for row in queues),
            napis=tuple(_NAPI.record(row, cells.next(_NAPI)) for row in napis),
            **{name: tuple(map(_MANY[name].record, rows)) for name, rows in (many | shared).items()},
            **{name: _ONE[name].record(row) for name, row in one.items()},
            **plain,
        ))  # fmt: skip
    return samples


def _device(device: Device) -> tuple:
    row = list(_DEVICE.plain(device))
    row[_PEER_PLACE] = device.peer and _PEER.plain(device.peer)
    return tuple(row)


def _device_back(row: tuple) -> Device:
    values = list(row)
    values[_PEER_PLACE] = values[_PEER_PLACE] and _PEER.record(values[_PEER_PLACE])
    return _DEVICE.record(values)


def _queue(queue: QueueSample) -> tuple:
    row = _QUEUE.plain(queue)
    if queue.unit is None:
        return row
    return (*row[:_UNIT_PLACE], queue.unit.value, *row[_UNIT_PLACE + 1 :])  # marshal knows no enumerations


def _queue_back(row: tuple) -> tuple:
    unit = row[_UNIT_PLACE]
    return row if unit is None else (*row[:_UNIT_PLACE], Unit(unit), *row[_UNIT_PLACE + 1 :])


def _growths(sample: Sample, before: dict) -> tuple[list, bytes]:
    """What the distributions grew by since the sample before, as (notes, bytes). Per distribution a note: None where
    there is none, -1 where it is as before, else its number of cells; the bytes hold the growth of those one after the
    other, as ``_planes`` leaves them. Updates ``before``.

    The growth of all cells is one subtraction of large integers: Python has no faster loop without numpy. Cells only
    grow, and where one does not (counters begin anew) the borrow is undone by the same addition on the way back.
    """
    notes, parts = [], []
    for place, cells in enumerate(_all_cells(sample)):
        then = before.get(place)
        if cells is None:
            notes.append(None)
        elif cells == then:
            notes.append(-1)
        else:
            notes.append(len(cells))
            parts.append(_subtracted(cells, then))
        before[place] = cells
    return notes, _planes(b"".join(parts))


def _planes(words: bytes) -> tuple[int, list[bytes]]:
    """Length, and 8-byte words as eight strings, all first bytes, all second bytes, ..., without the empty ones: growth is mostly
    small, so that six or seven of the eight fall away, and the rest packs better and faster."""
    planes = [words[place::8] for place in range(8)]
    return len(words), [b"" if plane.count(0) == len(plane) else plane for plane in planes]


def _words(length: int, planes: list[bytes]) -> bytes:
    """The inverse of ``_planes``."""
    words = bytearray(length)
    for place, plane in enumerate(planes):
        if plane:
            words[place::8] = plane
    return bytes(words)


def _all_cells(sample: Sample) -> Iterator[tuple[int, ...] | None]:
    for queue in sample.queues:
        yield from _QUEUE.cells(queue)
    for napi in sample.napis:
        yield from _NAPI.cells(napi)


def _number(cells: Sequence[int]) -> int:
    return int.from_bytes(array("Q", cells).tobytes(), sys.byteorder)


def _subtracted(cells: tuple[int, ...], then: tuple[int, ...] | None) -> bytes:
    size = 8 * len(cells)
    if not then or len(then) != len(cells):
        return array("Q", cells).tobytes()
    return ((_number(cells) - _number(then)) % (1 << 8 * size)).to_bytes(size, sys.byteorder)


def _grown(growths: tuple[list, bytes], before: dict) -> list:
    """The inverse of ``_growths``: all distributions of a sample, one after the other."""
    notes, planes = growths
    data = _words(*planes)
    found, start = [], 0
    for place, length in enumerate(notes):
        then = before.get(place)
        if length is None:
            cells = None
        elif length < 0:
            cells = then
        else:
            cells = _added(data[start : start + 8 * length], then)
            start += 8 * length
        before[place] = cells
        found.append(cells)
    return found


def _added(data: bytes, then: tuple[int, ...] | None) -> tuple[int, ...]:
    if then and len(then) * 8 == len(data):
        total = (int.from_bytes(data, sys.byteorder) + _number(then)) % (1 << 8 * len(data))
        data = total.to_bytes(len(data), sys.byteorder)
    return tuple(array("Q", data))
