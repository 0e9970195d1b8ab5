"""A recording as a text to send: what was set up, what changed when, the figures of each span, and what they say.

Markdown that reads as plain text (tables are aligned), fit to paste into a mail to a kernel list. Pure: samples in, text
out.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Sequence

from bqltop import format as fmt
from bqltop import histogram
from bqltop.eventlog import finder
from bqltop.model import Event, Sample, Unit
from bqltop.spans import CUTTING, SETTLE_S, Span, cut, passed, rank
from bqltop.verdict import judge

WIDTH = 76
DQL_MAX_LIMIT = 1879048192
"""What limit_max is where nobody set it (include/linux/dynamic_queue_limits.h)."""
MOST_EVENTS = 40
MOST_BARS = 8
SPANS_A_TABLE = 4
MOST_QUEUES = 8
BAR = 30
OLDEST_NS = 60 * 10**9
"""What the first sample tells of may have happened so long before it: it was found at attaching."""


class NoSamples(ValueError):
    """Nothing to report of."""

    def __str__(self) -> str:
        return "no samples in this span of time"


Row = tuple[str, Callable[[Span], str | None]]


def report(samples: Iterable[Sample], header: dict | None = None, notice: str | None = None,
           trailing: Iterable[Event] = ()) -> str:
    """The report of one device's samples, in order of time. ``header`` is the recording's, ``notice`` what is wrong
    with it, ``trailing`` events after the last sample. NoSamples where there are none."""
    log = _Log(header or {})
    spans = list(cut(log.passing(samples)))
    if not spans:
        raise NoSamples
    log.trailing(trailing)
    parts = [
        _title(spans),
        _setup(spans, log.lasted_ns / 1e9, header or {}, notice),
        _changes(log.told),
        _figures(spans),
        _queues(spans[-1]),
        _verdicts(spans),
        _distribution(spans),
    ]
    return "\n".join(part for part in parts if part)


class _Log:
    """Collects the events that samples carry or that are found in them, each once, with ns since the first sample: by the
    clock that nobody sets, as far as an event's place between two samples is known."""

    def __init__(self, header: dict) -> None:
        self.told: list[tuple[int, Event]] = []
        self.lasted_ns = 0
        self._finder = finder(header)
        self._last: Sample | None = None

    def passing(self, samples: Iterable[Sample]) -> Iterable[Sample]:
        for sample in samples:
            before, self._last = self._last, sample
            earliest = self.lasted_ns if before else -OLDEST_NS
            if before:
                self.lasted_ns += passed(before, sample)
            for event in self._finder.feed(sample):
                if all(event != other for _, other in self.told[-50:]):
                    ago = sample.time_ns - event.time_ns
                    self.told.append((min(self.lasted_ns, max(earliest, self.lasted_ns - ago)), event))
            yield sample

    def trailing(self, events: Iterable[Event]) -> None:
        """What happened after the last sample."""
        self.told += ((self.lasted_ns + max(0, event.time_ns - self._last.time_ns), event) for event in events)


# ---- the parts


def _title(spans: Sequence[Span]) -> str:
    device = spans[0].first.device
    return f"# bqltop report: {fmt.printable(device.name)}\n"


def _setup(spans: Sequence[Span], length: float, header: dict, notice: str | None) -> str:
    first, last = spans[0].first, spans[-1].last
    device, count = last.device, sum(span.samples for span in spans)
    rows = [
        ("recorded", f"{fmt.timestamp(first.time_ns)}, {fmt.seconds(length)}, {count} samples"
                     + (f" ({count / length:.3g}/s)" if length > 0 else "")),
        ("device", _device(last)),
        ("state", f"{device.oper_state}, mtu {fmt.text(device.mtu)}, txqueuelen {fmt.text(device.tx_queue_len)}, "
                  f"{len(last.queues)} TX queue{'s' * (len(last.queues) != 1)}"),
        ("qdisc", "; ".join(_qdisc(q) for q in last.qdiscs if q.parent == "root") or "none"),
        ("ring", _ring(last)),
        ("BQL", _bql(last)),
        ("sources", "; ".join(_probe(p) for p in last.probes if p.in_force) or "none"),
        ("missing", "; ".join(_probe(p) for p in last.probes if not p.in_force)),
        ("host", ", ".join(f"{key} {value}" for key, value in _about(header))),
        ("note", notice or ""),
    ]
    lines = []
    for name, text in rows:
        if text:
            lines += textwrap.wrap(fmt.printable(text), WIDTH, initial_indent=f"    {name:<10}", subsequent_indent=" " * 14)
    return "## Set-up\n\n" + "\n".join(lines) + "\n"


def _device(sample: Sample) -> str:
    device = sample.device
    kind = device.driver or device.kind or "?"
    place = f" in netns {device.netns}" if device.netns else ""
    peer = ""
    if device.peer:
        peer = f", peer {device.peer.name or f'index {device.peer.ifindex}'}"
        peer += f" in netns {device.peer.netns}" if device.peer.netns else ""
    mode = {True: ", NAPI mode", False: ", not in NAPI mode (no ring in use)", None: ""}[device.napi_mode]
    return f"{device.name} ({kind}){place}{peer}{mode}"


def _qdisc(qdisc) -> str:
    options = " ".join(f"{name} {value}" for name, value in qdisc.options.items())
    return f"{qdisc.kind} {qdisc.handle} {options}".strip()


def _ring(sample: Sample) -> str:
    sizes = sorted({queue.ring_size for queue in sample.queues if queue.ring_size is not None})
    return f"{'/'.join(map(str, sizes))} packets" if sizes else "not seen"


def _bql(sample: Sample) -> str:
    queues = [queue for queue in sample.queues if queue.limit is not None]
    if not queues:
        return "none on this driver"
    ranges = {name: _range(getattr(queue, name) for queue in queues) for name in ("limit", "limit_min", "limit_max")}
    hold = _range(queue.hold_time_ms for queue in queues)
    bounds = ", ".join(f"{name} {values}" for name, values in ranges.items())
    return f"counts {queues[0].unit or '?'}; at the end {bounds}, hold_time {hold} ms"


def _range(values: Iterable[int | None]) -> str:
    known = sorted({value for value in values if value is not None})
    if not known:
        return fmt.ABSENT
    first, last = ("max" if value == DQL_MAX_LIMIT else str(value) for value in (known[0], known[-1]))
    return first if first == last else f"{first}..{last}"


def _probe(probe) -> str:
    return f"{probe.name} ({probe.why})" if probe.why else probe.name


def _about(header: dict) -> list[tuple[str, object]]:
    about = header.get("about") if isinstance(header.get("about"), dict) else {}
    version = header.get("bqltop")
    found = [(str(key)[:40], str(value)[:200]) for key, value in list(about.items())[:20]]
    return found + ([("bqltop", str(version)[:40])] if version else [])


def _changes(told: Sequence[tuple[int, Event]]) -> str:
    """What happened, settings first where there is too much to tell."""
    if not told:
        return "## What happened\n\nNothing: no change of the set-up, no long stop, no watchdog, no burst of drops.\n"
    chosen = sorted(told, key=lambda one: (one[1].kind not in CUTTING, one[0]))[:MOST_EVENTS]
    chosen.sort(key=lambda one: one[0])
    rows = [
        (f"{after / 1e9:+.1f} s", fmt.clock(event.time_ns), "" if event.queue is None else f"{event.queue}",
         event.kind, event.text)
        for after, event in chosen
    ]
    more = len(told) - len(chosen)
    note = f"\n({more} more events are in the recording.)\n" if more else ""
    return "## What happened\n\n" + table(("after", "at", "q", "kind", "what"), rows, left=(3, 4)) + note


def _figures(spans: Sequence[Span]) -> str:
    """One table for every few spans: figures down, spans across."""
    legend = ("Rates, shares and levels: mean of the samples, in brackets the range from the 5th to the 95th percentile. "
              "Distributions: 50th / 99th percentile.")
    if len(spans) > 1:
        legend += f" The first {fmt.seconds(SETTLE_S)} after each change is left out."
    if len(spans[-1].last.queues) > 1:
        legend += " Of several queues: rates and distributions added up, everything else of the highest."
    text = ["## Figures\n", textwrap.fill(legend, WIDTH) + "\n"]
    for first in range(0, len(spans), SPANS_A_TABLE):
        chosen = spans[first : first + SPANS_A_TABLE]
        heads = ["", *(f"span {number}" for number in range(first + 1, first + len(chosen) + 1))]
        rows = [(title, *cells) for title, read in _ROWS if any(cells := [read(span) or fmt.ABSENT for span in chosen])
                and set(cells) != {fmt.ABSENT}]
        text.append(table(heads, [("length", *(fmt.seconds(span.seconds) for span in chosen)), *rows], left=(0,)))
    text += [f"- span {number}: {_causes(span)}" for number, span in enumerate(spans, 1) if span.cause]
    return "\n".join(text) + "\n"


def _causes(span: Span) -> str:
    texts = list(dict.fromkeys(event.text for event in span.cause))
    more = f", and {len(texts) - 4} more changes" if len(texts) > 4 else ""
    return fmt.printable("; ".join(texts[:4]) + more)


def _spread(id: str, show: Callable[[float], str]) -> Callable[[Span], str | None]:
    def cell(span: Span) -> str | None:
        values = span.values(id)
        if not values:
            return None
        low, high = show(rank(values, 0.05)), show(rank(values, 0.95))
        return show(span.mean(id)) if low == high else f"{show(span.mean(id))} ({low}..{high})"

    return cell


def _pair(name: str, show: Callable[[float], str]) -> Callable[[Span], str | None]:
    def cell(span: Span) -> str | None:
        low, high = span.percentile(name, 0.50), span.percentile(name, 0.99)
        return None if low is None else f"{show(low)} / {show(high)}"

    return cell


def _unit(span: Span) -> str | None:
    units = {queue.unit for queue in span.last.queues} - {None}
    return "/".join(sorted(units)) or None


_ROWS: tuple[Row, ...] = (
    ("packets/s", _spread("packets_per_s", fmt.rate)),
    ("BQL's unit", _unit),
    ("completed/s", _spread("completed_per_s", fmt.rate)),
    ("busy/s (requeues)", _spread("busy_per_s", fmt.rate)),
    ("qdisc requeues/s", _spread("requeues_per_s", fmt.rate)),
    ("stopped", _spread("stopped_share", fmt.share)),
    ("... by the driver", _spread("stopped_driver_share", fmt.share)),
    ("... by BQL", _spread("stopped_bql_share", fmt.share)),
    ("limit", _spread("limit", fmt.count)),
    ("inflight at transmit", _pair("inflight_histogram", fmt.count)),
    ("completed at once", _pair("completion_size_histogram", fmt.count)),
    ("ring, packets", _spread("ring_used", fmt.count)),
    ("dark buffer", _spread("dark_buffer_s", fmt.seconds)),
    ("wait in the qdisc", _pair("qdisc_sojourn_histogram", fmt.nanoseconds)),
    ("wait in the ring", _pair("ring_sojourn_histogram", fmt.nanoseconds)),
    ("qdisc backlog, packets", _spread("backlog_packets", fmt.count)),
    ("qdisc drops/s", _spread("drops_per_s", fmt.rate)),
    ("NAPI polls/s", _spread("polls_per_s", fmt.rate)),
    ("packets per poll", _spread("work_average", fmt.count)),
)


def _queues(span: Span) -> str:
    """The busiest queues of the last span, where there are several."""
    if span.window is None or len(span.window.queues) < 2:
        return ""
    ends = {queue.index: queue for queue in span.last.queues}
    busiest = sorted(span.window.queues, key=lambda q: (-(q.packets_per_s or 0), q.index))[:MOST_QUEUES]
    rows = [
        (q.index, fmt.rate(q.packets_per_s), fmt.rate(q.completed_per_s), fmt.rate(q.busy_per_s), fmt.share(q.stopped_share),
         fmt.count(q.inflight_p50), fmt.count(q.inflight_p99), fmt.count(ends[q.index].limit), fmt.seconds(q.ring_sojourn_p99_s))
        for q in busiest
    ]
    heads = ("q", "packets/s", "done/s", "busy/s", "stopped", "infl p50", "infl p99", "limit", "ring p99")
    left_out = len(span.window.queues) - len(rows)
    note = f"\n(The busiest; {left_out} more queues are in the recording.)\n" if left_out else ""
    return "## Queues, last span\n\n" + table(heads, rows) + note


def _verdicts(spans: Sequence[Span]) -> str:
    lines = ["## What it says\n"]
    for number, span in enumerate(spans, 1):
        head = f"- span {number}: " if len(spans) > 1 else "- "
        lines += [textwrap.fill(fmt.printable(text), WIDTH, initial_indent=head, subsequent_indent="  ") for text in _says(span)]
    return "\n".join(lines) + "\n"


def _says(span: Span) -> list[str]:
    """The gravest verdicts on a whole span."""
    if span.window is None and span.last.present:
        return ["Too short to say anything."]
    found = judge(span.window, span.last, rings=span.rings)[:3]
    return [f"{verdict.sentence} {verdict.detail}".strip() for verdict in found]


def _distribution(spans: Sequence[Span]) -> str:
    """Inflight at each transmit of every span; where there is no BQL, the ring's occupancy at each sample."""
    parts = []
    for number, span in enumerate(spans[-MOST_BARS:], max(1, len(spans) - MOST_BARS + 1)):
        cells = span.cells.get("inflight_histogram")
        if cells:
            unit = _unit(span) or Unit.PACKETS
            parts.append((number, f"inflight at each transmit, {unit}", cells))
        elif any(span.ring.values()):
            ring = [0] * histogram.LOG_LINEAR_CELLS
            for used, count in span.ring.items():
                ring[histogram.log_linear_cell(used)] += count
            parts.append((number, "packets in the ring at each sample", ring))
    if not parts:
        return ""
    return "## Distribution\n\n" + "\n".join(f"Span {n}, {what}:\n\n{bars(cells)}" for n, what, cells in parts)


# ---- text


def bars(cells: Sequence[int]) -> str:
    """A LOG_LINEAR histogram in a code block, one line for every power of two that has something in it, and those
    between."""
    octaves: dict[int, int] = {}
    for cell, count in enumerate(cells):
        low = histogram.log_linear_bounds(cell)[0]
        octaves[low.bit_length()] = octaves.get(low.bit_length(), 0) + count
    filled = [octave for octave, count in octaves.items() if count]
    if not filled:
        return "    (nothing)\n"
    total, most = sum(octaves.values()), max(octaves.values())
    lines = []
    for octave in range(min(filled), max(filled) + 1):
        low, high = (1 << octave) >> 1, (1 << octave) - 1
        name = str(low) if low >= high else f"{low}..{high}"
        count = octaves.get(octave, 0)
        bar = "#" * max(round(BAR * count / most), 1 if count else 0)
        lines.append(f"    {name:>17} |{bar:<{BAR}}| {fmt.share(count / total):>8}\n")
    return "".join(lines)


def table(heads: Sequence[str], rows: Sequence[Sequence[str]], left: Sequence[int] = ()) -> str:
    """A Markdown table whose columns line up; those in ``left`` to the left, the others to the right."""
    texts = [[fmt.printable(str(cell)).replace("|", "\\|") for cell in row] for row in (heads, *rows)]
    widths = [max(3, *(len(row[column]) for row in texts)) for column in range(len(heads))]

    def line(row: Sequence[str]) -> str:
        cells = [cell.ljust(w) if i in left else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True))]
        return "| " + " | ".join(cells) + " |\n"

    ruler = ["-" * width if i in left else "-" * (width - 1) + ":" for i, width in enumerate(widths)]
    return line(texts[0]) + "| " + " | ".join(ruler) + " |\n" + "".join(line(row) for row in texts[1:])
