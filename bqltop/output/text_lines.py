"""``--text``: one readable line per window, like vmstat; the header comes again every screenful.

A device with several queues gives totals for what adds up (rates) and its worst queue for what does not (stopped,
inflight, ring, dark buffer); the column ``q`` says which queue that is, ``3/64`` being queue 3 of 64. Where packets
are sampled for the time they wait, or echoes are sent, columns of those follow.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from bqltop import format as fmt
from bqltop.model import QueueSample, Sample, Unit
from bqltop.window import QdiscWindow, QueueWindow, Window

UNIT_WORDS = {Unit.PACKETS: "pkts", Unit.BYTES: "bytes", None: fmt.ABSENT}


@dataclass(frozen=True, slots=True)
class Line:
    """What one text line is made from: the worst queue, all queues' windows and the root qdisc."""

    sample: Sample
    window: Window
    queue: QueueSample
    rates: QueueWindow

    def total(self, name: str) -> float | None:
        """Sum over the queues that have the figure; None where none has."""
        values = [value for queue in self.window.queues if (value := getattr(queue, name)) is not None]
        return sum(values) if values else None

    @property
    def root(self) -> QdiscWindow | None:
        return next((qdisc for qdisc in self.window.qdiscs if qdisc.parent == "root"), None)

    @property
    def work(self) -> float | None:
        """Packets per poll over all NAPI instances that polled."""
        polls = sum(napi.polls_per_s for napi in self.window.napis)
        return sum(napi.work_per_s for napi in self.window.napis) / polls if polls else None


def worst(windows: Sequence[QueueWindow]) -> int:
    """Position of the queue to look at first: stopped longest, then the deepest dark buffer, then the busiest."""

    def badness(position: int) -> tuple[float, ...]:
        queue = windows[position]
        return (queue.stopped_share or 0.0, queue.dark_buffer_s or 0.0, queue.packets_per_s or 0.0, -position)

    return max(range(len(windows)), key=badness)


def _number(line: Line) -> str:
    total = len(line.sample.queues)
    return str(line.queue.index) if total == 1 else f"{line.queue.index}/{total}"


def _lamps(line: Line) -> str:
    bits = (("D", line.queue.drv_xoff), ("S", line.queue.stack_xoff), ("F", line.queue.frozen))
    return fmt.ABSENT if line.queue.stopped is None else "".join(letter if on else "." for letter, on in bits)


def _percent(value: float | None) -> str:
    return fmt.share(value).removesuffix(" %")


def _pair(first: object, second: object) -> str:
    return fmt.ABSENT if first is None and second is None else f"{fmt.count(first)}/{fmt.count(second)}"


def _root(name: str, show: Callable[[float | None], str]) -> Callable[[Line], str]:
    return lambda line: show(getattr(line.root, name, None))


def _echo(name: str) -> Callable[[Line], str]:
    return lambda line: fmt.nanoseconds(getattr(line.sample.probe, name, None))


def _lost(line: Line) -> str:
    echo = line.sample.probe
    return fmt.ABSENT if echo is None else _pair(echo.lost, echo.sent)


Columns = tuple[tuple[str, int, Callable[[Line], str]], ...]
"""Title, width, and what stands in it."""

COLUMNS: Columns = (
    ("time", 8, lambda line: fmt.clock(line.sample.time_ns)),
    ("q", 5, _number),
    ("xoff", 4, _lamps),
    ("stop%", 5, lambda line: _percent(line.rates.stopped_share)),
    ("drv%", 5, lambda line: _percent(line.rates.stopped_driver_share)),
    ("bql%", 5, lambda line: _percent(line.rates.stopped_bql_share)),
    ("infl/limit", 11, lambda line: _pair(line.queue.inflight, line.queue.limit)),
    ("unit", 5, lambda line: UNIT_WORDS[line.queue.unit]),
    ("ring", 9, lambda line: _pair(line.queue.ring_used, line.queue.ring_size)),
    ("dark buf", 8, lambda line: fmt.seconds(line.rates.dark_buffer_s)),
    ("pkt/s", 6, lambda line: fmt.rate(line.total("packets_per_s"))),
    ("done/s", 6, lambda line: fmt.rate(line.total("completed_per_s"))),
    ("busy/s", 6, lambda line: fmt.rate(line.total("busy_per_s"))),
    ("work", 4, lambda line: fmt.rate(line.work)),
    ("backlog", 7, _root("backlog_packets", fmt.count)),
    ("drop/s", 6, _root("drops_per_s", fmt.rate)),
    ("t/o", 4, lambda line: fmt.count(line.total("tx_timeouts"))),
)
SOJOURN: Columns = (
    ("qdisc p50", 9, lambda line: fmt.seconds(line.rates.qdisc_sojourn_p50_s)),
    ("qdisc p99", 9, lambda line: fmt.seconds(line.rates.qdisc_sojourn_p99_s)),
    ("ring p50", 8, lambda line: fmt.seconds(line.rates.ring_sojourn_p50_s)),
    ("ring p99", 8, lambda line: fmt.seconds(line.rates.ring_sojourn_p99_s)),
)
ECHOES: Columns = (
    ("rtt p50", 8, _echo("rtt_p50_ns")),
    ("rtt p99", 8, _echo("rtt_p99_ns")),
    ("lost/sent", 11, _lost),
)


def columns(samples: Iterable[Sample]) -> Columns:
    """The columns for these devices' lines: those of everything that one of them has."""
    samples = list(samples)
    timed = any(queue.qdisc_sojourn_histogram is not None for sample in samples for queue in sample.queues)
    probed = any(sample.probe is not None for sample in samples)
    return COLUMNS + SOJOURN * timed + ECHOES * probed


def header(shown: Columns = COLUMNS) -> str:
    """The heads of the columns; their meaning is in docs/csv-and-text.md and behind ``?`` on the screen."""
    return " ".join(title.rjust(width) for title, width, _ in shown) + "\n"


def line(sample: Sample, window: Window | None, shown: Columns = COLUMNS) -> str:
    """One line for a window; where there is none, a line that says why."""
    if window is None or not window.queues:
        name = fmt.printable(sample.device.name)
        what = "a fresh start, no rates yet" if sample.present else "the device is away"
        return f"{fmt.clock(sample.time_ns)} {name}: {what}\n"
    position = worst(window.queues)
    source = Line(sample, window, sample.queues[position], window.queues[position])
    return " ".join(show(source).rjust(width) for _, width, show in shown) + "\n"


def writer(streams: Mapping[int, Sample] | None = None, rows: int | None = None) -> Callable[[Sample, Window | None], str]:
    """A writer that repeats the header so that one is always on a screen of ``rows`` lines (the terminal's own), and when
    there are other columns. Where ``streams`` are several devices, each line ends with the name of its own."""
    every = max(2, (rows or shutil.get_terminal_size((80, 24)).lines) - 1)
    written, shown = 0, COLUMNS

    def write(sample: Sample, window: Window | None) -> str:
        nonlocal written, shown
        before, shown = shown, columns([*(streams or {}).values(), sample])
        if shown != before:
            written = 0
        text = line(sample, window, shown)
        if window is not None and streams is not None and len(streams) > 1:
            text = f"{text[:-1]} {fmt.printable(sample.device.name)}\n"
        if written % every == 0:
            text = header(shown) + text
            written += 1
        written += 1
        return text

    return write
