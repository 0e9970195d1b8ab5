"""The diagnostics page: how well the sampling keeps time, what bqltop costs, which probes are in force."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rich.style import Style
from textual.strip import Strip

from bqltop import format as fmt
from bqltop.model import Sample
from bqltop.tui.diagnosis import Figures, Spread
from bqltop.tui.draw import palette
from bqltop.tui.draw.line import Line, blank, left, literal, rule, wrap

LABEL = 22


@dataclass(frozen=True, slots=True)
class State:
    """Everything the page shows. ``no_account``: why the kernel does not count what the programs cost."""

    sample: Sample | None = None
    figures: Figures | None = None
    interval_s: float = 0.1
    versions: Mapping[str, str] = field(default_factory=dict)
    no_account: str | None = None


def page(state: State, width: int) -> list[Strip]:
    """All lines, ``width`` cells wide."""
    sample, figures = state.sample, state.figures
    lines: list[Strip] = []
    if sample is None or figures is None:
        lines.append(Line((" waiting for the first sample", palette.FAINT)).strip(width))
    else:
        _sampling(lines, state, figures, width)
        _cost(lines, state, figures, width)
        _probes(lines, sample, width)
        _attachment(lines, sample, width)
    _head(lines, "versions", width)
    for name, version in state.versions.items():
        _pair(lines, name, version, width)
    return lines


def _sampling(lines: list[Strip], state: State, figures: Figures, width: int) -> None:
    _head(lines, f"sampling, the last {figures.taken} samples", width)
    _pair(lines, "planned", f"every {fmt.seconds(state.interval_s)}", width)
    _pair(lines, "really", spread(figures.between), width)
    _pair(lines, "later than planned", spread(figures.late), width)
    _pair(lines, "time to read one", spread(figures.read), width)
    missed = f"{figures.missed} since the start, {figures.missed_lately} of them in this span"
    _pair(lines, "samples missed", missed, width, palette.NOTICE if figures.missed_lately else palette.TEXT)


def _cost(lines: list[Strip], state: State, figures: Figures, width: int) -> None:
    _head(lines, "cost, the last ten seconds", width)
    _pair(lines, "CPU of bqltop", f"{fmt.share(figures.cpu_share)} of one CPU", width)
    _pair(lines, "memory", f"{fmt.size(figures.rss_bytes)}, at most {fmt.size(figures.rss_most)}", width)
    if figures.bpf_share is None:
        why = state.no_account or "waiting for the kernel's account"
        _pair(lines, "eBPF programs", literal(why), width, palette.DIM)
        return
    _pair(lines, "eBPF programs", f"{fmt.share(figures.bpf_share)} of one CPU: {fmt.rate(figures.bpf_runs_per_s)} runs/s, "
          f"{fmt.nanoseconds(figures.bpf_ns_per_run)} each (the kernel's account, kept while this page is open)", width)


def _probes(lines: list[Strip], sample: Sample, width: int) -> None:
    _head(lines, "probes", width)
    for probe in sample.probes:
        state = "in force" if probe.in_force else "not in force"
        text = f"{state}: {literal(probe.why)}" if probe.why else state
        _pair(lines, literal(probe.name), text, width, palette.TEXT if probe.in_force else palette.NOTICE)


def _attachment(lines: list[Strip], sample: Sample, width: int) -> None:
    device = sample.device
    _head(lines, "attachment", width)
    where = f" in {literal(device.netns)}" if device.netns else ""
    _pair(lines, "device", f"{literal(device.name)}{where}, index {device.ifindex}, {len(sample.queues)} TX queues", width)
    _pair(lines, "epoch", f"{sample.epoch} (counters begin anew with each)", width)
    torn = sum(queue.torn_reads or 0 for queue in sample.queues)
    _pair(lines, "torn reads", f"{torn} (inflight seen below 0, shown as 0)", width)
    if sample.own and sample.own.strays:
        text = f"{sample.own.strays} packets of which no queue could be told, in no queue's figures"
        _pair(lines, "not counted", text, width, palette.NOTICE)
    if device.napi_reason:
        _pair(lines, "veth", literal(device.napi_reason), width)
        for command in device.napi_commands:
            _pair(lines, "", literal(command), width, palette.STRONG)


def spread(values: Spread | None) -> str:
    """Half of the values, 99 % of them, the highest."""
    if values is None:
        return fmt.ABSENT
    median, most, highest = (fmt.nanoseconds(value) for value in (values.p50, values.p99, values.highest))
    return f"{median} median, {most} p99, {highest} at most"


def _head(lines: list[Strip], title: str, width: int) -> None:
    if lines:
        lines.append(blank(width))
    lines.append(rule(title, width))


def _pair(lines: list[Strip], label: str, text: str, width: int, style: Style = palette.TEXT) -> None:
    for number, part in enumerate(wrap(text, max(10, width - LABEL - 1))):
        lines.append(Line((left(f" {label}" if not number else "", LABEL), palette.DIM), (part, style)).strip(width))
