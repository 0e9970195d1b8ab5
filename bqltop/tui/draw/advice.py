"""The page of advice: what one might change for what is going on now, why, and what it costs."""

from __future__ import annotations

from collections.abc import Sequence

from rich.style import Style
from textual.strip import Strip

from bqltop.advice import WITHOUT, Advice
from bqltop.tui.draw import palette
from bqltop.tui.draw.line import Line, blank, literal, rule, wrap
from bqltop.verdict import Verdict

MARGIN = 5
MOST = 9
"""Pieces of advice that have a key."""


def page(verdicts: Sequence[Verdict], advice: Sequence[Advice], why_not: str | None, width: int) -> list[Strip]:
    """All lines, ``width`` cells wide. ``why_not``: why nothing can be put on trial from here, None if it can."""
    lines = [rule("what is going on", width)]
    for verdict in verdicts:
        _text(lines, verdict.sentence, width, palette.STRONG)
        _text(lines, verdict.detail, width, palette.DIM)
    lines += [blank(width), rule("what one might do", width)]
    if not advice:
        calm = all(verdict.kind in WITHOUT for verdict in verdicts)
        _text(lines, "Nothing: what is going on calls for no change." if calm else
              "Nothing more: what could help is set already.", width, palette.TEXT)  # fmt: skip
    for number, one in enumerate(advice[:MOST], 1):
        _advice(lines, number, one, why_not, width)
    if why_not and any(one.applicable for one in advice):
        _text(lines, f"Nothing can be put on trial here: {literal(why_not)}.", width, palette.NOTICE)
    return lines


def _advice(lines: list[Strip], number: int, one: Advice, why_not: str | None, width: int) -> None:
    if number > 1:
        lines.append(blank(width))
    key = f" {number}" if one.applicable and not why_not else " ·"
    first = True
    for part in wrap(one.what[0].upper() + one.what[1:] + ".", width - MARGIN):
        lines.append(Line((f"{key if first else ''}".ljust(MARGIN), palette.KEY), (part, palette.STRONG)).strip(width))
        first = False
    _text(lines, f"Why: {one.why}.", width, palette.TEXT)
    _text(lines, f"Cost: {one.cost}.", width, palette.NOTICE)
    _text(lines, how(one), width, palette.DIM)
    if one.why_not:
        _text(lines, f"Cannot be set here: {one.why_not}.", width, palette.NOTICE)


def how(one: Advice) -> str:
    """The knobs, or what to type."""
    if one.knobs:
        where = "" if one.queue is None else f" on queue {one.queue}"
        return ", ".join(f"{knob} = {value}" for knob, value in one.knobs) + where
    return "; ".join(one.commands)


def _text(lines: list[Strip], text: str, width: int, style: Style) -> None:
    for part in wrap(literal(text), width - MARGIN) if text else ():
        lines.append(Line((" " * MARGIN, palette.TEXT), (part, style)).strip(width))
