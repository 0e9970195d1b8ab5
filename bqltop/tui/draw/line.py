"""Lines of styled text of an exact width in cells. Text from outside goes through ``literal``."""

from __future__ import annotations

from collections.abc import Iterable

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from bqltop.tui.draw import palette

REPLACEMENT = "�"


def literal(text: str) -> str:
    """A string from outside (device, namespace, process name) as it may go on a terminal: what would be read as a
    control sequence, or is half a character, is replaced; nothing else changes."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else REPLACEMENT for c in text)


def cut(text: str, width: int) -> str:
    """``text`` in at most ``width`` cells; where something is lost it ends in an ellipsis."""
    if width <= 0:
        return ""
    if cell_len(text) <= width:
        return text
    return set_cell_size(text, width - 1).rstrip() + "…"


def cut_within(text: str, width: int) -> str:
    """As ``cut``, but the ellipsis stands in the middle: names that begin alike end differently."""
    if width <= 2 or cell_len(text) <= width:
        return cut(text, width)
    end, room = len(text), (width - 1) // 2
    while end > len(text) - width and cell_len(text[end - 1]) <= room:
        end -= 1
        room -= cell_len(text[end])
    tail = text[end:]
    return set_cell_size(text, width - 1 - cell_len(tail)).rstrip() + "…" + tail


def left(text: str, width: int) -> str:
    """``text`` in exactly ``width`` cells, flush left."""
    text = cut(text, width)
    return text + " " * (width - cell_len(text))


def right(text: str, width: int) -> str:
    """``text`` in exactly ``width`` cells, flush right."""
    text = cut(text, width)
    return " " * (width - cell_len(text)) + text


class Line:
    """Collects the segments of one line and knows how wide it is so far."""

    __slots__ = ("segments", "width")

    def __init__(self, *parts: tuple[str, Style]) -> None:
        self.segments: list[Segment] = []
        self.width = 0
        for text, style in parts:
            self.add(text, style)

    def add(self, text: str, style: Style = palette.TEXT) -> Line:
        if text:
            self.segments.append(Segment(text, style))
            self.width += len(text) if text.isascii() else cell_len(text)
        return self

    def extend(self, segments: Iterable[Segment], width: int | None = None) -> Line:
        """Add segments as they are; ``width`` is theirs together, where the caller knows it."""
        added = list(segments)
        self.segments += added
        self.width += sum(cell_len(segment.text) for segment in added) if width is None else width
        return self

    def to(self, column: int, style: Style = palette.TEXT, fill: str = " ") -> Line:
        """Fill up to ``column``."""
        return self.add(fill * (column - self.width), style)

    def strip(self, width: int, style: Style = palette.TEXT) -> Strip:
        """The line as Textual draws it: cut or filled to exactly ``width``."""
        strip = Strip(self.segments, self.width)
        if self.width > width:
            return strip.crop(0, width)
        return strip.extend_cell_length(width, style) if self.width < width else strip


def blank(width: int, style: Style = palette.TEXT) -> Strip:
    return Line().strip(width, style)


def rule(title: str, width: int, note: str = "") -> Strip:
    """A panel's head: its title in a horizontal line, a note flush right."""
    line = Line((f"─ {cut(title, width - 4)} ", palette.TITLE))
    # The rule's own dash belongs to the line, not to the title.
    line.segments[0:1] = [Segment("─ ", palette.RULE), Segment(line.segments[0].text[2:], palette.TITLE)]
    note = cut(note, width - line.width - 4)
    line.to(width - cell_len(note) - (3 if note else 0), palette.RULE, "─")
    if note:
        line.add(f" {note} ", palette.DIM)
    return line.to(width, palette.RULE, "─").strip(width)


def greyed(strips: Iterable[Strip]) -> list[Strip]:
    """The same text in grey: values that are no longer live."""
    return [Strip([Segment(s.text, palette.FAINT) for s in strip], strip.cell_length) for strip in strips]


def wrap(text: str, width: int) -> list[str]:
    """Words into lines of at most ``width`` cells; a word longer than a line is cut into pieces."""
    if width <= 0:
        return []
    lines, current = [], ""
    for word in text.split(" "):
        while cell_len(word) > width:
            if current and width - cell_len(current) < 2:
                lines.append(current)
                current = ""
            piece = set_cell_size(word, width - cell_len(current) - 1 if current else width).rstrip() or word[0]
            lines.append(f"{current} {piece}" if current else piece)
            current, word = "", word[len(piece):]
        joined = f"{current} {word}" if current else word
        if cell_len(joined) <= width:
            current = joined
        else:
            lines.append(current)
            current = word
    return [*lines, current] if current or not lines else lines
