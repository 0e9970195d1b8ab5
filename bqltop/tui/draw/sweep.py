"""The page of the sweep: what to type, how far it is, and the table so far."""

from __future__ import annotations

from rich.style import Style
from textual.strip import Strip

from bqltop import format as fmt
from bqltop.sweep import report
from bqltop.sweep.figures import FIGURES
from bqltop.sweep.plan import label
from bqltop.sweep.result import Result
from bqltop.tui.draw import palette
from bqltop.tui.draw.line import Line, blank, left, literal, right, rule, wrap
from bqltop.tui.sweeping import State

TITLE, VALUE, GAP = 24, 11, 2
HOW = (
    "Type what to try, and Enter: every combination is set for some seconds, in random order, and what is set now "
    "as well. Everything is put back at the end, and when a key is pressed.",
    "tx-usecs=0,50,100 limit_min=0,8    knobs and their values (t shows which there are)",
    "runs=3 seconds=3    trials of each setting, and their length",
    "probe=peer    also ping a veth's other end, or an address",
    "drops>1% loss>5% rtt>50ms    stop at once when that is exceeded",
)


def page(state: State, width: int) -> list[Strip]:
    """All lines, ``width`` cells wide."""
    lines = [rule("sweep", width)]
    if state.fault:
        _text(lines, state.fault, width, palette.LOSS)
    if state.running or state.trials:
        _progress(lines, state, width)
        result = state.result
        if result is not None:
            lines.append(blank(width))
            _table(lines, result, width)
            if not state.running:
                lines.append(blank(width))
                _text(lines, report.recommendation(result), width, palette.STRONG)
    else:
        for text in HOW:
            _text(lines, text, width, palette.TEXT)
    return lines


def _progress(lines: list[Strip], state: State, width: int) -> None:
    progress = state.progress
    if state.running and progress is not None:
        filled = (width - 2) * progress.done // progress.total
        lines.append(Line((" " + "█" * filled, palette.RATE), ("░" * (width - 2 - filled), palette.TRACK)).strip(width))
        text = f"{progress.done + 1} of {progress.total}: {label(progress.setting)}, run {progress.run}; " \
               f"{fmt.seconds(progress.left_s)} left. Any key stops it and puts everything back."  # fmt: skip
        _text(lines, text, width, palette.TEXT)
    elif state.stopped:
        _text(lines, f"Stopped: {state.stopped}. What was set before is set again.", width, palette.NOTICE)
    elif not state.running:
        _text(lines, "Done. What was set before is set again.", width, palette.TEXT)
    for sentence in state.left:
        _text(lines, f"Not put back: {sentence}", width, palette.LOSS)


def _table(lines: list[Strip], result: Result, width: int) -> None:
    """Settings across, as many as fit: those that are best first; the rest in a block below."""
    rows = [row for row in result.rows if row.runs]
    per_block = max(1, (width - TITLE) // (VALUE + GAP))
    for start in range(0, len(rows), per_block):
        block = rows[start : start + per_block]
        if start:
            lines.append(blank(width))
        for name, values in _heads(block):
            lines.append(_row(name, values, [_style(row) for row in block], width))
        for figure in FIGURES:
            if any(row.figures[figure.id] is not None for row in rows):
                values = [figure.format(row.figures[figure.id]) for row in block]
                lines.append(_row(figure.title, values, [_style(row) for row in block], width))
    for row in result.rows:
        if row.trouble and not row.runs:
            _text(lines, f"Not measured: {row.label}: {row.trouble}", width, palette.NOTICE)


def _heads(block) -> list[tuple[str, list[str]]]:
    """One line per knob: names of settings side by side would be too wide."""
    knobs = list(dict.fromkeys(knob for row in block for knob, _ in row.setting))
    stars = ("", [f"as it was {report.BEST if row.best else ''}" if not row.setting else report.BEST if row.best else ""
                  for row in block])  # fmt: skip
    return [stars, *((knob, [dict(row.setting).get(knob, "·") for row in block]) for knob in knobs)]


def _style(row) -> Style:
    return palette.STRONG if row.best else palette.TEXT


def _row(title: str, values: list[str], styles: list[Style], width: int) -> Strip:
    line = Line((left(f" {title}", TITLE), palette.DIM))
    for value, style in zip(values, styles, strict=True):
        line.add(" " * GAP + right(literal(value), VALUE), style)
    return line.strip(width)


def _text(lines: list[Strip], text: str, width: int, style: Style) -> None:
    for part in wrap(literal(text), width - 2):
        lines.append(Line((f" {part}", style)).strip(width))
