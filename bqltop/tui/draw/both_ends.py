"""The other end of a veth beside the one that is shown: what one sends, the other's NAPI takes."""

from __future__ import annotations

from textual.strip import Strip

from bqltop.tui.draw import head, palette, panels, queues
from bqltop.tui.draw.line import Line, blank, cut, greyed, rule
from bqltop.tui.frame import Frame, View, rows

VERDICT = 4
MOST_QUEUES = 12


def panel(frame: Frame | None, width: int, height: int) -> list[Strip]:
    """Title, verdict, TX queues, NAPI and qdiscs of the other end, as far as there is room."""
    if frame is None:
        return ([Line((" attaching to it ...", palette.FAINT)).strip(width)] + [blank(width)] * height)[:height]
    state = "AWAY" if frame.away else frame.sample.device.oper_state
    title = Line((cut(f" {head.device_title(frame.sample.device)}", width - 12), palette.STRONG), (f"  {state}", palette.DIM))
    lines = [title.strip(width), *head.verdict(frame.verdicts, width, VERDICT)]
    figures = _figures(frame, width, height - len(lines))
    lines += greyed(figures) if frame.away else figures
    return (lines + [blank(width)] * height)[:height]


def _figures(frame: Frame, width: int, height: int) -> list[Strip]:
    shown, folded = rows(frame, View())
    placed = queues.place(queues.columns_for(shown, width), width)
    lines = [rule("TX queues", width, str(len(frame.sample.queues))), queues.header(placed, width)]
    lines += [queues.row_strip(row, placed, width) for row in shown[:MOST_QUEUES]]
    hidden = len(shown) - MOST_QUEUES
    if hidden > 0:
        lines.append(Line((f"  and {hidden} more", palette.FAINT)).strip(width))
    if folded:
        lines.append(Line((f"  {len(folded)} idle", palette.FAINT)).strip(width))
    lines.append(rule("NAPI", width))
    napis = min(11 + len(frame.sample.napis), max(3, height - len(lines) - 5))
    lines += panels.napi(frame, width, napis)
    lines.append(rule("qdisc", width))
    return lines + panels.qdiscs(frame, width, max(0, height - len(lines)))
