"""Who holds the queues of a tun or tap, whether it takes packets, and the size of the ring."""

from __future__ import annotations

from textual.strip import Strip

from bqltop.model import Sample, TunQueueSample
from bqltop.tui.draw import palette
from bqltop.tui.draw.line import Line, blank, left, literal
from bqltop.tui.frame import Frame

MOST = 5
STATES = {"T": "stopped", "t": "traced", "Z": "zombie", "X": "dead", "D": "blocked"}
"""States of a process in which it reads nothing, or not soon (proc(5))."""


def lines_wanted(sample: Sample) -> int:
    """Lines of the panel, its head included; 0 for what is no tun."""
    return 1 + max(1, min(len(sample.tun_queues), MOST)) if sample.device.kind == "tun" else 0


def note(frame: Frame) -> str:
    """The flags, and the ring's size."""
    device = frame.sample.device
    flags = next((queue.flags for queue in frame.sample.tun_queues if queue.flags), ())
    ring = f"ring = txqueuelen {device.tx_queue_len}" if device.tx_queue_len is not None else ""
    return "  ".join(filter(None, (ring, " ".join(flags))))


def panel(frame: Frame, width: int, height: int) -> list[Strip]:
    """One line a queue that somebody holds."""
    holders = frame.sample.tun_queues
    if not holders:
        text = " nobody is seen to hold it: what is sent waits, or is dropped"
        return [Line((text, palette.NOTICE)).strip(width), *[blank(width)] * (height - 1)][:height]
    shown = holders if len(holders) <= height else holders[: max(0, height - 1)]
    waiting = any(queue.ring_used for queue in frame.sample.queues)
    strips = [_line(holder, width, waiting) for holder in shown]
    if len(shown) < len(holders):
        strips.append(Line((f" and {len(holders) - len(shown)} more queues", palette.FAINT)).strip(width))
    return (strips + [blank(width)] * height)[:height]


def _line(holder: TunQueueSample, width: int, waiting: bool) -> Strip:
    name = f"{holder.pid:>7} {literal(holder.process)}"
    wide = width >= 68
    line = Line((" " + left(name, min(28, max(10, width - (49 if wide else 28)))), palette.STRONG))
    state = STATES.get(holder.state)
    if state:
        line.add(f"  {state}", palette.LOSS)
    if not holder.attached:
        line.add("  switched off", palette.NOTICE)
    words = {True: ("takes packets", palette.RATE), False: ("takes none, yet some wait" if wide else "takes none", palette.LOSS)}
    text, style = words.get(holder.takes, ("not known yet" if waiting else "nothing to take", palette.DIM))
    line.add(f"  {text}", style)
    if not holder.certain:
        line.add("  by name only", palette.FAINT)
    if holder.vhost or wide:
        line.add("  by vhost" if holder.vhost else "  by itself", palette.DIM)
    return line.strip(width)
