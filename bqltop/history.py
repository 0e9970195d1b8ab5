"""The past in bounded memory: every figure a chart draws, and every sample to look back at.

Full resolution for FULL_SAMPLES samples (an hour at 10 Hz) of a device with up to ten queues, and for ten minutes of one
with 64; older blocks of BLOCK samples are thinned to their lowest, highest and last value and one sample. An envelope
query therefore never hides a spike, however old. Measured, all distributions filled (tests/output/test_history.py prints
it): see docs/recording.md.

All times are ``Sample.monotonic_ns``. Not safe for use by two threads at once.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from math import inf, isnan, nan
from mmap import mmap

from bqltop.charted import CHARTED, PER_QUEUE, Charted, Row, combined
from bqltop.model import Sample
from bqltop.packing import pack, unpack
from bqltop.window import Window, between

FULL_SAMPLES = 36_000
"""Samples at full resolution, at most: an hour at 10 Hz."""
QUEUE_SAMPLES = 384_000
"""... and queues times samples: 6000 samples, ten minutes at 10 Hz, of 64 queues."""
THIN_BLOCKS = 13_500
"""Thinned blocks kept, at most: a day at 10 Hz."""
THIN_QUEUE_BLOCKS = 32_000
"""... and queues times blocks: 500 blocks, 53 minutes at 10 Hz, of 64 queues."""
BLOCK = 64
CHUNK = 16
"""Samples packed together: the first whole, the others as differences. Sets what looking back costs."""

MAPPED = 1 << 16
"""Bytes from which on a buffer is a mapping of its own. Freed, it goes back to the kernel whole; from the heap, where buffers
of every length come and go for hours, a hole would stay: memory grew by 5 % in the second hour of 64 queues."""

Point = tuple[float, float, float]
"""Lowest, highest and last value of a chart's column."""


def _joined(parts: Sequence[bytes | array]) -> list[memoryview]:
    """The same parts side by side in one buffer."""
    sizes = [memoryview(part).nbytes for part in parts]
    whole = memoryview(mmap(-1, sum(sizes)) if sum(sizes) >= MAPPED else bytearray(sum(sizes)))
    ends = list(accumulate(sizes))
    views = [whole[end - size : end] for size, end in zip(sizes, ends, strict=True)]
    for view, part in zip(views, parts, strict=True):
        view[:] = memoryview(part).cast("B")
    return views


class _Block:
    """BLOCK samples in a row: figures by column, sample after sample (slot 0 is all queues combined), and the samples
    themselves, packed. Once it is full it is settled: everything in one buffer."""

    def __init__(self, queues: int) -> None:
        self.queues = queues
        self.times = array("q")
        self.columns: dict[str, array | memoryview] = {}
        self.gaps: set[str] = set()
        self.chunks: list[bytes | memoryview] = []
        self.live: list[Sample] = []
        self._summary: dict[tuple[str, int], Point | None] = {}

    def add(self, sample: Sample, figures: dict[str, Row]) -> None:
        for id in figures.keys() | self.columns.keys():
            self._append(id, figures.get(id, ()))
        self.times.append(sample.monotonic_ns)
        self.live.append(sample)
        if len(self.live) == CHUNK:
            self.chunks.append(pack(self.live))
            self.live = []
        if len(self.times) == BLOCK:
            self._settle()

    def _settle(self) -> None:
        views = _joined([*self.columns.values(), *self.chunks])  # the columns first: their values are aligned so
        self.columns = {id: view.cast("f") for id, view in zip(self.columns, views, strict=False)}
        self.chunks = views[len(self.columns) :]

    def _append(self, id: str, row: Row) -> None:
        """One row of a column. A column that never had a value costs nothing."""
        total = combined(id, row)
        values, width = self.columns.get(id), self.width(id)
        if values is None:
            if isnan(total):
                return
            values = self.columns[id] = array("f", [nan]) * (len(self.times) * width)
            if self.times:
                self.gaps.add(id)
        if len(row) < max(1, width - 1) or any(map(isnan, row)):
            self.gaps.add(id)
        values.append(total)
        if width > 1:
            values.extend(row or [nan] * (width - 1))

    def width(self, id: str) -> int:
        return self.queues + 1 if id in PER_QUEUE else 1

    def points(self, id: str, slot: int, first: int, last: int) -> Point | None:
        """Envelope of samples first..last-1; None where there is no value."""
        whole = first == 0 and last == len(self.times) == BLOCK
        if whole and (id, slot) in self._summary:
            return self._summary[id, slot]
        values = self.columns.get(id)
        width = self.width(id)
        point = None
        if values is not None and slot < width:
            part = values[first * width + slot : last * width : width]
            if id in self.gaps:
                part = [value for value in part if not isnan(value)]
            if part:
                point = (min(part), max(part), part[-1])
        if whole:
            self._summary[id, slot] = point
        return point

    def sample(self, place: int, unpacked: Callable[[bytes | memoryview], list[Sample]]) -> Sample:
        """The sample at a place of the block, by way of the owner's cache of unpacked chunks."""
        chunk, within = divmod(place, CHUNK)
        return unpacked(self.chunks[chunk])[within] if chunk < len(self.chunks) else self.live[within]

    def thinned(self) -> _Block:
        """This block as a single entry: its envelope and its last sample."""
        thin = _Block(self.queues)
        thin.times = self.times[-1:]
        for id in self.columns:
            rows = [self.points(id, slot, 0, len(self.times)) or (nan, nan, nan) for slot in range(self.width(id))]
            thin.columns[id] = array("f", [value for row in zip(*rows, strict=True) for value in row])
        thin.chunks = [pack([self.sample(len(self.times) - 1, unpack)])]
        thin._settle()
        return thin

    def thin_point(self, id: str, slot: int) -> Point | None:
        """The envelope of a thinned block."""
        values, width = self.columns.get(id), self.width(id)
        if values is None or slot >= width or isnan(values[slot]):
            return None
        return values[slot], values[slot + width], values[slot + 2 * width]

    @property
    def memory(self) -> int:
        """Bytes in buffers; the objects around them add about 4 kB a block."""
        return sum(memoryview(part).nbytes for part in (*self.columns.values(), *self.chunks, self.times))


def most_samples(queues: int) -> int:
    """How many samples of a device with so many queues are kept at full resolution."""
    return min(FULL_SAMPLES, max(BLOCK, QUEUE_SAMPLES // queues))


def most_blocks(queues: int) -> int:
    """How many thinned blocks are kept before them."""
    return min(THIN_BLOCKS, max(1, THIN_QUEUE_BLOCKS // queues))


class History:
    """Samples as they come, oldest thinned and then forgotten.

    ``full_samples`` overrides how many are kept at full resolution and ``thin_blocks`` how many thinned blocks before them
    (for tests and for small hosts).
    """

    def __init__(self, full_samples: int | None = None, thin_blocks: int | None = None) -> None:
        self._full_samples, self._thin_blocks = full_samples, thin_blocks
        self.clear()

    def clear(self) -> None:
        """Forget everything (a replay jumped back)."""
        self._blocks: deque[_Block] = deque()
        self._thin: deque[_Block] = deque()
        self._newest: int | None = None
        self._charted = Charted()
        self._cache: OrderedDict[int, tuple[bytes, list[Sample]]] = OrderedDict()

    def add(self, sample: Sample) -> None:
        """Take a sample. One from before the last one starts a new history."""
        if self._newest is not None and sample.monotonic_ns <= self._newest:
            self.clear()
        self._newest = sample.monotonic_ns
        block = self._blocks[-1] if self._blocks else None
        if block is None or len(block.times) >= BLOCK or block.queues != len(sample.queues):
            block = _Block(len(sample.queues))
            self._blocks.append(block)
            self._forget(max(1, len(sample.queues)))
        block.add(sample, self._charted.columns(sample))

    def precede(self, older: History) -> None:
        """Put what another one holds, all of it from before, before what this one holds."""
        if not self._blocks:
            self._blocks, self._newest = older._blocks, older._newest
        elif not self._thin and older.span and older.span[1] < self.span[0]:
            self._blocks.extendleft(reversed(older._blocks))

    def _forget(self, queues: int) -> None:
        full = self._full_samples or most_samples(queues)
        # one block more than asked for: the newest is empty yet
        while len(self._blocks) > -(-full // BLOCK) + 1:
            self._thin.append(self._blocks.popleft().thinned())
        thin = self._thin_blocks or most_blocks(queues)
        while len(self._thin) > thin:
            self._thin.popleft()

    # ---- questions

    def __len__(self) -> int:
        """Samples at full resolution."""
        return sum(len(block.times) for block in self._blocks)

    @property
    def span(self) -> tuple[int, int] | None:
        """Times of the oldest and the newest entry; None while there is none."""
        oldest = self._thin or self._blocks
        return (oldest[0].times[0], self._blocks[-1].times[-1]) if oldest else None

    @property
    def full_since(self) -> int | None:
        """Time from which on every sample is kept."""
        return self._blocks[0].times[0] if self._blocks else None

    @property
    def memory(self) -> int:
        """Bytes held, without the last few samples that are not packed yet."""
        return sum(block.memory for tier in (self._thin, self._blocks) for block in tier)

    def series(self, field: str, queue: int | None, start: int, end: int, columns: int) -> list[Point | None]:
        """(lowest, highest, last) of ``field`` in each of ``columns`` equal parts of start..end (monotonic ns); None
        where a part has no value. ``queue`` None is all queues combined: rates added up, everything else the
        highest. KeyError for a field that is not in CHARTED. The position of a queue is taken for its number.
        """
        if field not in CHARTED:
            raise KeyError(field)
        slot = 0 if queue is None or field not in PER_QUEUE else queue + 1
        width = max(1.0, (end - start) / columns)
        found: list[Point | None] = [None] * columns

        def put(time: int, point: Point | None) -> None:
            place = int((time - start) / width)
            if point is not None and 0 <= place <= columns:
                place = min(place, columns - 1)
                old = found[place]
                found[place] = point if old is None else (min(old[0], point[0]), max(old[1], point[1]), point[2])

        for thin in self._thin:
            if start <= thin.times[0] <= end:
                put(thin.times[0], thin.thin_point(field, slot))
        for block in self._blocks:
            if block.times and block.times[-1] >= start and block.times[0] <= end:
                self._put_block(block, field, slot, start, end, width, put)
        return found

    def _put_block(self, block: _Block, field: str, slot: int, start: int, end: int, width: float, put) -> None:
        """One block's points: cut where a chart's column ends, whole where it lies within one."""
        times = block.times
        first, last = bisect_left(times, start), bisect_right(times, end)
        while first < last:
            edge = start + width * (int((times[first] - start) / width) + 1)
            stop = last if times[last - 1] < edge else max(first + 1, bisect_left(times, edge, first, last))
            put(times[first], block.points(field, slot, first, stop))
            first = stop

    def highest(self, field: str, queue: int | None, start: int, end: int) -> float | None:
        """The highest value in a span, for a chart's scale."""
        top = max((point[1] for point in self.series(field, queue, start, end, 1) if point), default=-inf)
        return None if top == -inf else top

    def at(self, time: int) -> tuple[Sample, Window | None] | None:
        """The last sample not after ``time`` (the oldest for an earlier one) and the window it ends; None while the
        history is empty. In the thinned past the window spans to the entry before."""
        tiers = [*self._thin, *self._blocks]
        tiers = [block for block in tiers if block.times]
        if not tiers:
            return None
        number = max(0, bisect_right(tiers, time, key=lambda block: block.times[0]) - 1)
        block = tiers[number]
        place = max(0, bisect_right(block.times, time) - 1)
        sample = block.sample(place, self._unpacked)
        if place:
            before = block.sample(place - 1, self._unpacked)
        elif number:
            before = tiers[number - 1].sample(len(tiers[number - 1].times) - 1, self._unpacked)
        else:
            before = None
        return sample, between(before, sample)

    def neighbour(self, time: int, steps: int) -> int | None:
        """The time of the sample ``steps`` after (or before) the one at ``time``, for moving a cursor; stops at the
        ends. None while the history is empty."""
        times = self._times()
        if not times:
            return None
        place = max(0, bisect_right(times, time) - 1)
        return times[min(len(times) - 1, max(0, place + steps))]

    def first_after(self, moments: Iterable[int]) -> list[int]:
        """For each moment the time of the first sample that shows what happened then: at or after it, the newest where that
        is yet to come. Empty while the history is."""
        times = self._times()
        return [times[min(len(times) - 1, bisect_left(times, moment))] for moment in moments] if times else []

    def _times(self) -> list[int]:
        """Of every entry, oldest first."""
        return [time for tier in (self._thin, self._blocks) for block in tier for time in block.times]

    def _unpacked(self, chunk: bytes | memoryview) -> list[Sample]:
        """A chunk's samples, from a cache of two: a cursor moves within one chunk and over its edge."""
        key = id(chunk)
        if key not in self._cache:
            self._cache[key] = (chunk, unpack(chunk))  # the chunk is kept with it, so that its id stays its own
            while len(self._cache) > 2:
                self._cache.popitem(last=False)
        self._cache.move_to_end(key)
        return self._cache[key][1]
