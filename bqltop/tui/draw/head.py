"""The header, the verdict lines and the key hints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.style import Style
from textual.strip import Strip

from bqltop import format as fmt
from bqltop.model import Device, ProbeSample
from bqltop.tui.draw import palette
from bqltop.tui.draw.line import Line, blank, cut, literal, wrap
from bqltop.tui.frame import Frame, View
from bqltop.verdict import COSTLY, NOTABLE, SEVERE, Verdict


@dataclass(frozen=True, slots=True)
class Item:
    """A piece of the header; lower ``rank`` stays longer when the room shrinks. ``least``: it may be cut to so many cells."""

    text: str
    style: Style
    rank: int
    right: bool = False
    least: int | None = None


LEAST_TITLE = 8
"""Cells to which the device's name may be cut: what the screen is (paused, away, recording, a replay) comes first."""


def device_title(device: Device) -> str:
    """The device and its other end: veth0@blue → eth0@web-1."""
    title = literal(device.name) + (f"@{literal(device.netns)}" if device.netns else "")
    peer = device.peer
    if peer:
        name = literal(peer.name) if peer.name else f"index {peer.ifindex}"
        title += f" → {name}" + (f"@{literal(peer.netns)}" if peer.netns else "")
    return title


def header(frame: Frame, view: View, width: int, height: int = 1) -> list[Strip]:
    """One line of what is watched and how, or two where there is room: the second names probes and precision."""
    lines = [_fit(_device_items(frame, view, height == 1), width)]
    if height > 1:
        lines.append(_fit(_probe_items(frame), width))
    return lines


def _device_items(frame: Frame, view: View, alone: bool) -> list[Item]:
    device, plain, dim = frame.sample.device, palette.HEADER, palette.HEADER_DIM
    driver = literal(device.driver or device.kind or "?")
    queues = f"{len(frame.sample.queues)} txq"
    state = "AWAY" if frame.away else device.oper_state
    items = [
        Item("bqltop", palette.HEADER_DIM, 9),
        Item("{}/{}".format(*view.device) if view.device[1] > 1 else "", palette.HEADER_STRONG, 1),
        Item(device_title(device), palette.HEADER_STRONG, 0, least=LEAST_TITLE),
        Item(driver, plain, 3),
        Item(state, palette.HEADER_NOTICE if frame.away else plain, -1 if frame.away else 2),
        Item(literal(device.qdisc or ""), plain, 4),
        Item(f"mtu {device.mtu}" if device.mtu else "", dim, 7),
        Item(f"txqlen {device.tx_queue_len}" if device.tx_queue_len is not None else "", dim, 10),
        Item(queues, dim, 8),
        Item(_paused(frame, view), palette.HEADER_NOTICE, -1, True),
        *(Item(f" {badge} ", palette.HEADER_NOTICE, -1, True) for badge in view.badges),
        Item("read-only" if frame.read_only else "", palette.HEADER_DIM, 11, True),
    ]
    if alone:
        items.append(Item("" if frame.sees_state else "no eBPF", palette.HEADER_STRONG, 1, True))
    cpu = fmt.share(frame.window.own_cpu_share) if frame.window else fmt.ABSENT
    return [
        *items,
        Item(refresh_rate(frame.interval_s), plain, 5, True),
        Item(f"cpu {cpu}", dim, 6, True),
        Item(fmt.clock(frame.sample.time_ns), plain, 5, True),
    ]


def _paused(frame: Frame, view: View) -> str:
    """Whether drawing is paused, and how far back what is shown lies."""
    if not view.paused:
        return ""
    ago = f" {fmt.seconds(round(frame.ago_s, 1))} ago" if view.cursor_ns is not None and frame.ago_s else ""
    return f" PAUSED{ago} "


def _probe_items(frame: Frame) -> list[Item]:
    """The probes: those in force with their precision, those that are not with what to type. Words, not colours."""
    items = []
    for place, probe in enumerate(frame.sample.probes):
        why = f": {literal(probe.why)}" if probe.why else ""
        if probe.in_force:
            items.append(Item(f"{literal(probe.name)}{why}", palette.HEADER_DIM, 20 + place))
        else:
            items.append(Item(f"no {literal(probe.name)}{why}", palette.HEADER, place))
    echo = frame.sample.probe
    if echo is not None:
        items.append(Item(_echo(echo), palette.HEADER_STRONG, -1, True))
    softirq = frame.window.softirq_share if frame.window else None
    if softirq is not None:
        items.append(Item(f"softirq {fmt.share(softirq)}", palette.HEADER_DIM, 8, True))
    own = frame.sample.own
    if own:
        items.append(Item(f"{own.rss_bytes / 1e6:.0f} MB", palette.HEADER_DIM, 9, True))
        if own.missed:
            items.append(Item(f"{own.missed} samples missed", palette.HEADER_STRONG, 7, True))
    return items


def _echo(echo: ProbeSample) -> str:
    """Round trips of --probe over the last minute, and the part spent in the qdisc."""
    if echo.error:
        return f"probe {literal(echo.address)}: {literal(echo.error)}"
    text = f"rtt {fmt.nanoseconds(echo.rtt_p50_ns)} p99 {fmt.nanoseconds(echo.rtt_p99_ns)}"
    if echo.qdisc_avg_ns is not None:
        text += f", qdisc {fmt.nanoseconds(echo.qdisc_avg_ns)}"
    return text + (f", lost {echo.lost} of {echo.sent}" if echo.lost else "")


def refresh_rate(interval_s: float) -> str:
    """10 Hz, 2 Hz, 1 Hz, then every 2 s."""
    return f"{1 / interval_s:.3g} Hz" if interval_s <= 1 else f"every {fmt.seconds(interval_s)}"


def _fit(items: Sequence[Item], width: int) -> Strip:
    """As many items as fit, by rank, two blanks apart; the ones of the right-hand side flush right."""
    items = [item for item in items if item.text]
    kept: dict[Item, str] = {}
    room = width - 2
    for item in sorted(items, key=lambda item: item.rank):
        text = cut(item.text, room - 2) if item.least and room >= item.least + 2 else item.text
        if cell_len(text) + 2 <= room or not kept:
            kept[item] = text
            room -= cell_len(text) + 2
    line = Line((" ", palette.HEADER))
    for item in (item for item in items if item in kept and not item.right):
        line.add(cut(kept[item], width - line.width - 1), item.style).add("  ", palette.HEADER)
    rest = Line()
    for item in (item for item in items if item in kept and item.right):
        rest.add("  ", palette.HEADER).add(kept[item], item.style)
    rest.add(" ", palette.HEADER)
    line.to(width - rest.width, palette.HEADER).extend(rest.segments)
    return line.strip(width, palette.HEADER)


SEVERITY_MARKS = {SEVERE: ("!!", palette.LOSS), COSTLY: ("! ", palette.DRIVER), NOTABLE: ("> ", palette.BQL)}


def verdict(verdicts: Sequence[Verdict], width: int, height: int) -> list[Strip]:
    """The first verdict's sentence and detail; with room its evidence, then the sentences that come next. A mark of
    one or two characters tells how severe it is."""
    lines: list[Line] = []
    for number, each in enumerate(verdicts):
        mark, mark_style = SEVERITY_MARKS.get(each.severity, ("· ", palette.RATE))
        for place, parts in enumerate(_verdict_lines(each, width - 5, first=number == 0)):
            lines.append(Line((f" {mark} " if place == 0 else "    ", mark_style), *parts))
        if number == 0 and each.evidence and height > len(lines):
            lines.append(_evidence(each, width))
    if len(lines) > height > 0:
        lines[height - 1] = _ending_in_ellipsis(lines[height - 1], width)
    strips = [line.strip(width) for line in lines[:height]]
    return strips + [blank(width)] * (height - len(strips))


def _ending_in_ellipsis(line: Line, width: int) -> Line:
    """The last line there is room for, marked as not the last one there is."""
    *before, last = line.segments
    shorter = Line(*((s.text, s.style) for s in before))
    return shorter.add(cut(last.text, width - shorter.width - 2).rstrip("… ") + " …", last.style)


def _verdict_lines(each: Verdict, width: int, first: bool) -> list[list[tuple[str, Style]]]:
    """Sentence and, of the first verdict, detail as wrapped lines; the detail goes on in the sentence's last line."""
    sentence, detail = literal(each.sentence), literal(each.detail) if first else ""
    style = palette.STRONG if first else palette.TEXT
    lines: list[list[tuple[str, Style]]] = []
    left_over = len(sentence)
    for text in wrap(f"{sentence} {detail}".rstrip(), width):
        part = max(0, min(len(text), left_over))
        lines.append([(text[:part], style), (text[part:], palette.TEXT)])
        left_over -= len(text) + 1
    return lines


def _evidence(each: Verdict, width: int) -> Line:
    line = Line(("    ", palette.DIM))
    for name, value in each.evidence:
        if line.width + cell_len(name) + cell_len(value) + 4 > width:
            break
        line.add(f"{literal(name)} ", palette.DIM).add(literal(value), palette.TEXT).add("   ", palette.DIM)
    return line


def keys(hints: Sequence[tuple[str, str]], width: int) -> Strip:
    """Keys and what they do; the ones that do not fit are left to ``?``, which comes first."""
    line = Line((" ", palette.KEY_TEXT))
    for key, text in hints:
        needed = cell_len(key) + cell_len(text) + 3
        if line.width + needed > width:
            continue
        line.add(key, palette.KEY).add(f" {text}  ", palette.KEY_TEXT)
    return line.strip(width, palette.KEY_TEXT)


def said(text: str, width: int) -> Strip:
    """One line about what was tried, in the place of the key hints."""
    return Line((cut(f" {literal(text)}", width), palette.HEADER_NOTICE)).strip(width, palette.KEY_TEXT)


def too_small(width: int, height: int, least: tuple[int, int]) -> list[Strip]:
    """What stands in a window that is too small for the screen."""
    text = f"{width}x{height} is too small: bqltop needs {least[0]}x{least[1]}. q quits"
    lines = [Line((part, palette.STRONG)) for part in wrap(text, width)]
    strips = [line.strip(width) for line in lines[:height]]
    return strips + [blank(width)] * (height - len(strips))
