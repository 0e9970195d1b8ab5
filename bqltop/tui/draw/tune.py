"""The tuning panel: knobs, what the selected one would become, what was changed, and what that did."""

from __future__ import annotations

from rich.style import Style
from textual.strip import Strip

from bqltop import format as fmt
from bqltop.tui.draw import palette
from bqltop.tui.draw.line import Line, blank, cut, left, literal, right, rule, wrap
from bqltop.tui.tuning import TRIAL_S, State
from bqltop.tuning.changes import Change
from bqltop.tuning.effect import Effect
from bqltop.tuning.knobs import Setting

TWO_COLUMNS = 76
"""From this width on the knobs stand at the left and all else beside them."""
LEAST_KNOBS = 4
CHANGES_SHOWN = 4
TITLE, VALUE, PERCENT = 14, 8, 7
SHORT = {"within the noise": "noise", "stands out": "moved", "better": "better", "worse": "worse"}
"""Verdicts for a narrow panel."""
_FORMATS = {"/s": fmt.rate, "share": fmt.share, "s": fmt.seconds}


def panel(state: State, device: str, now: float, width: int, height: int) -> list[Strip]:
    """``now`` is the tuner's clock, for the trials' countdown."""
    title = f"tune {literal(device)}"
    note = "all queues" if state.queue is None else f"queue {state.queue}"
    if state.unavailable:
        lines = [rule(title, width), *_text(f" {state.unavailable}", width, palette.NOTICE)]
    elif width >= TWO_COLUMNS:
        split = max(36, width * 2 // 5)
        knobs = [rule(title, split, note), *_knobs(state, split, height - 1)]
        beside = _below(state, now, width - split - 1, height)
        lines = _abreast(knobs, beside, split, width, height)
    else:
        below = _below(state, now, width, max(0, height - 1 - min(LEAST_KNOBS, len(state.settings))))
        lines = [rule(title, width, note), *_knobs(state, width, height - 1 - len(below)), *below]
    return [*lines, *[blank(width)] * height][:height]


def _abreast(left_lines: list[Strip], right_lines: list[Strip], split: int, width: int, height: int) -> list[Strip]:
    gap = blank(1)
    both = []
    for row in range(height):
        a = left_lines[row] if row < len(left_lines) else blank(split)
        b = right_lines[row] if row < len(right_lines) else blank(width - split - 1)
        both.append(Strip.join([a, gap, b]))
    return both


# -- the knobs ---------------------------------------------------------------------------------------------------


def _knobs(state: State, width: int, height: int) -> list[Strip]:
    """The list, scrolled so that the selected knob is in it."""
    if height <= 0:
        return []
    count = len(state.settings)
    first = max(0, min(state.selected - height // 2, count - height))
    rows = [_knob(state, index, width) for index in range(first, min(count, first + height))]
    return rows + [blank(width)] * (height - len(rows))


def _knob(state: State, index: int, width: int) -> Strip:
    setting, chosen = state.settings[index], index == state.selected
    name = max(18, min(26, width - 24))
    line = Line(("▸" if chosen else " ", palette.STRONG))
    plain = palette.TEXT if setting.values and not setting.why_not else palette.FAINT
    line.add(left(setting.knob.id, name), palette.STRONG if chosen else plain)
    line.add(" ")
    if chosen and state.draft is not None:
        line.add(setting.text, palette.DIM).add(" → ", palette.DIM)
        line.add(literal(state.draft), palette.LOSS if state.fault else palette.NOTICE)
        if state.typing:
            line.add("_", palette.NOTICE)
    elif not setting.values:
        line.add(cut(f"- {literal(setting.why_not or '')}", width - line.width), palette.FAINT)
    else:
        line.add(literal(setting.text), plain)
        line.add(f" {setting.unit}" if setting.value not in setting.knob.words.values() else "", palette.FAINT)
        line.add("  not settable" if setting.why_not else "", palette.FAINT)
    strip = line.strip(width)
    return strip.apply_style(palette.CURSOR) if chosen else strip


# -- below, or beside: the selected knob, the changes, the effect ----------------------------------------------------


def _below(state: State, now: float, width: int, height: int) -> list[Strip]:
    """As much as ``height`` holds: the selected knob goes first, then changes, then the effect."""
    blocks = [_chosen(state, width), _changes(state, now, width), _effect(state, width)]
    lines: list[Strip] = []
    for block in blocks:
        room = height - len(lines)
        if len(block) <= room or (block and room >= 3):
            lines += block[:room]
    return lines


def _chosen(state: State, width: int) -> list[Strip]:
    """The selected knob: what it is or what stands in its way, the command, the keys."""
    setting = state.setting
    if setting is None:
        return []
    lines = [rule(setting.knob.id, width, setting.unit)]
    refused = state.refusal[1] if state.refusal and state.refusal[0] == setting.knob.id else None
    if refused:
        lines += _text(f" {refused}", width, palette.LOSS)
    elif state.message:
        lines += _text(f" {state.message}", width, palette.RATE)
    elif state.fault:
        lines += _text(f" {state.fault}", width, palette.LOSS)
    elif state.draft is None:
        lines += _about(setting, width)
    if state.plan is not None and state.draft is not None:
        lines += _plan(state, width)
    return [*lines, _keys(state, width)]


def _about(setting: Setting, width: int) -> list[Strip]:
    lines = _text(f" {setting.knob.help}", width, palette.TEXT)
    if not setting.values or setting.why_not:
        return lines + _text(f" {setting.why_not}", width, palette.NOTICE)
    return lines + _text(f" takes {setting.bounds}", width, palette.DIM)


def _plan(state: State, width: int) -> list[Strip]:
    plan = state.plan
    lines: list[Strip] = []
    if plan.refused:
        lines += _text(f" {plan.refused}", width, palette.LOSS)
    for warning in plan.warnings:
        lines += _text(f" ! {warning}", width, palette.NOTICE)
    if plan.cuts_traffic:
        lines += _text(f" ! can cut traffic: {plan.cuts_traffic}", width, palette.NOTICE)
    if plan.command:
        lines += _text(f" $ {plan.command}", width, palette.STRONG)
    return lines


def _keys(state: State, width: int) -> Strip:
    """What the keys do now."""
    if state.busy:
        hints = (("", "working ..."),)
    elif state.confirming:
        hints = (("Enter", f"do it, on trial for {TRIAL_S:g} s"), ("Esc", "leave it"))
    elif state.draft is not None:
        hints = (("Enter", "apply"), ("Tab", "on trial"), *(() if state.typing else (("y", "copy"),)), ("Esc", "leave it"))
    else:
        trial = any(change.trial_until is not None for change in state.changes)
        hints = (
            *((("k", "keep trial"),) if trial else ()), *((("R", "restore"),) if state.left_behind else ()),
            ("+ -", "step"), ("Enter", "type"), *((("u U", "undo"),) if state.changes else ()), ("← →", "queue"),
            ("t", "close"),
        )  # fmt: skip
    line = Line((" ", palette.TEXT))
    for key, text in hints:
        if line.width + len(key) + len(text) + 3 <= width:
            line.add(key, palette.STRONG).add(f" {text}  ", palette.DIM)
    return line.strip(width)


def _changes(state: State, now: float, width: int) -> list[Strip]:
    """What is in force, the latest first; what an earlier run left."""
    if not state.changes and not state.left_behind:
        return []
    lines = [rule("in force", width, "u undoes the latest, U all" if state.changes else "")]
    for change in list(reversed(state.changes))[:CHANGES_SHOWN]:
        lines.append(_change(change, now, width))
    hidden = len(state.changes) - CHANGES_SHOWN
    if hidden > 0:
        lines.append(Line((f" and {hidden} more", palette.DIM)).strip(width))
    for text in state.left_behind[:CHANGES_SHOWN]:
        lines += _text(f" left by an earlier run: {text}", width, palette.NOTICE)
    return lines


def _change(change: Change, now: float, width: int) -> Strip:
    if change.trial_until is None:
        return Line((cut(f" {literal(change.sentence)}", width), palette.TEXT)).strip(width)
    countdown = f"trial {max(0, round(change.trial_until - now))} s "
    return (
        Line((left(f" {literal(change.sentence)}", width - len(countdown) - 1), palette.TEXT))
        .add(" " + countdown, palette.NOTICE)
        .strip(width)
    )


def _effect(state: State, width: int) -> list[Strip]:
    """Before and after, side by side."""
    if not state.effect_of:
        return []
    lines = [rule("before and after", width), *_text(f" {state.effect_of}", width, palette.DIM)]
    shown = [one for one in state.effects if one.before is not None or one.after is not None]
    if not shown:
        return [*lines, Line((" measuring ...", palette.DIM)).strip(width)]
    seconds = shown[0].seconds
    head = Line((left(" medians of", TITLE), palette.DIM), (right(f"{seconds[0]} s", VALUE), palette.DIM),
                (right(f"{seconds[1]} s", VALUE), palette.DIM), (right("diff", PERCENT), palette.DIM))  # fmt: skip
    return [*lines, head.strip(width), *(effect_line(one, width) for one in shown)]


def effect_line(one: Effect, width: int, title: int = TITLE) -> Strip:
    """One figure: before, after, the difference, and whether that is more than noise. ``title``: cells for its name."""
    show = _FORMATS.get(one.figure.unit, fmt.count)
    style = _verdict_style(one)
    percent = "-" if one.percent is None else f"{one.percent:+.0f} %" if round(one.percent) else "0 %"
    line = Line((left(f" {one.figure.title}", title), palette.TEXT), (right(show(one.before), VALUE), palette.TEXT),
                (right(show(one.after), VALUE), palette.TEXT), (right(percent, PERCENT), style))  # fmt: skip
    room = width - line.width - 1
    return line.add(" " + left(one.verdict if room >= 18 else SHORT.get(one.verdict, ""), room), style).strip(width)


def _verdict_style(one: Effect) -> Style:
    if not one.stands_out:
        return palette.DIM
    return {"better": palette.RATE, "worse": palette.LOSS}.get(one.verdict, palette.NOTICE)


def _text(text: str, width: int, style: Style) -> list[Strip]:
    """Wrapped words, an indent of one kept on every line."""
    parts = wrap(literal(text.strip()), max(1, width - 2))
    return [Line((f" {part}", style)).strip(width) for part in parts]
