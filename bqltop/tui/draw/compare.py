"""The page of A and B: every figure side by side, and whether they differ by more than noise."""

from __future__ import annotations

from textual.strip import Strip

from bqltop.compare import Comparison
from bqltop.tui.draw import palette
from bqltop.tui.draw.line import Line, blank, right, rule, wrap
from bqltop.tui.draw.tune import PERCENT, TITLE, VALUE, effect_line


def page(comparison: Comparison, queue: int | None, width: int) -> list[Strip]:
    """All lines, ``width`` cells wide. ``queue``: figures of this TX queue only, None for all together."""
    lines = [rule("A and B" + ("" if queue is None else f", queue {queue}"), width)]
    if comparison.letter is None:
        hint = "Nothing marked yet. b begins A; change something, and b again begins B; b goes on to and fro."
        return lines + [Line((f" {part}", palette.TEXT)).strip(width) for part in wrap(hint, width - 2)]
    for part in wrap(comparison.sentence(queue), width - 2):
        lines.append(Line((f" {part}", palette.STRONG)).strip(width))
    spans = "  ".join(f"{span.letter} {span.seconds} s" for span in comparison.spans[-12:])
    lines.append(Line((f" spans: {spans}  (now {comparison.letter})", palette.DIM)).strip(width))
    lines.append(blank(width))
    table = comparison.table(queue)
    title = max([TITLE, *(len(one.figure.title) + 1 for one in table)])
    head = Line((" medians".ljust(title), palette.DIM), (right("A", VALUE), palette.TITLE),
                (right("B", VALUE), palette.TITLE), (right("diff", PERCENT), palette.DIM))  # fmt: skip
    return [*lines, head.strip(width), *(effect_line(one, width, title) for one in table)]
