"""The colours, each with one meaning everywhere: what the table shows in orange is orange in the chart too.

Colour only ever repeats what a letter, a word or a shape already says: NO_COLOR and TERM=dumb lose nothing.
Every style names its own background, since a segment without a style is not something Textual's filters accept.
"""

from __future__ import annotations

from rich.style import Style

BACKGROUND = "#10141a"
RAISED = "#1a2029"


def _style(color: str, bold: bool = False, background: str = BACKGROUND, reverse: bool = False) -> Style:
    return Style(color=color, bgcolor=background, bold=bold, reverse=reverse)


TEXT = _style("#c9d1d9")
STRONG = _style("#f0f6fc", bold=True)
DIM = _style("#8b949e")
FAINT = _style("#565f6b")
RULE = _style("#3d4652")
TITLE = _style("#9ecbff", bold=True)

DRIVER = _style("#f0a04b", bold=True)
"""The driver and its ring: DRV_XOFF, ring occupancy, the dark buffer."""
BQL = _style("#c297ff", bold=True)
"""BQL: STACK_XOFF, inflight and limit."""
FROZEN = _style("#56d4dd", bold=True)
RATE = _style("#7ee787")
"""Packets that move: rates, NAPI work."""
LOSS = _style("#ff7b72", bold=True)
"""Drops, timeouts, faults."""
NOTICE = _style("#e3b341", bold=True)
"""Worth a look: requeues, PAUSED, missing figures."""

DRIVER_SOFT = _style("#b87935")
BQL_SOFT = _style("#8a6bc0")
RATE_SOFT = _style("#4f9e5a")
TRACK = _style("#2b323c")
"""The empty part of a bar."""

HEADER = _style("#c9d1d9", background=RAISED)
HEADER_STRONG = _style("#ffffff", bold=True, background=RAISED)
HEADER_DIM = _style("#8b949e", background=RAISED)
HEADER_NOTICE = _style("#10141a", bold=True, background="#e3b341")
KEY = _style("#f0f6fc", bold=True, background=RAISED)
KEY_TEXT = _style("#8b949e", background=RAISED)
CURSOR = Style(bgcolor="#263041")
"""Laid over the selected row; the row also carries a mark of its own."""
