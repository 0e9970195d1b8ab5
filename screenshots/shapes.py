"""Braille dots and bars of a Textual screenshot as shapes instead of characters.

Hardly any fixed-width font has braille, and those that lack it borrow glyphs of another width: charts drift apart.
As rectangles they look the same in every viewer, and bars have no seams.
"""

from __future__ import annotations

import html
import re

CELL_W, CELL_H, ASCENT = 12.2, 24.4, 18.5
"""Textual's export_screenshot: cell size and baseline of a 20 px font."""
_TEXT = re.compile(r'<text class="(?P<class>[^"]+)" x="(?P<x>[\d.]+)" y="(?P<y>[\d.]+)"[^>]*>(?P<text>[^<]*)</text>')
_DOT_BITS = {0: (0, 0), 1: (0, 1), 2: (0, 2), 3: (1, 0), 4: (1, 1), 5: (1, 2), 6: (0, 3), 7: (1, 3)}
_EIGHTHS = {0x2588 + n: (8 - n) / 8 for n in range(8)}


def with_shapes(svg: str) -> str:
    """``svg`` with every braille and block character drawn as rectangles in the colour of its text."""
    return _TEXT.sub(_replace, svg)


def _replace(match: re.Match) -> str:
    text = html.unescape(match["text"])
    if not any(_is_shape(ord(c)) for c in text):
        return match[0]
    x, top = float(match["x"]), float(match["y"]) - ASCENT
    shapes = [shape for place, c in enumerate(text) for shape in _shapes(ord(c), x + place * CELL_W, top)]
    path = "".join(f"M{a:.2f} {b:.2f}h{w:.2f}v{h:.2f}h{-w:.2f}z" for a, b, w, h in shapes)
    rest = "".join(" " if _is_shape(ord(c)) else c for c in text)
    kept = ""
    if rest.strip():
        start, end = match.span("text")
        escaped = html.escape(rest, quote=False).replace(" ", "&#160;")
        kept = match[0][: start - match.start()] + escaped + match[0][end - match.start():]
    return f'{kept}<path class="{match["class"]}" d="{path}"/>'


def _is_shape(code: int) -> bool:
    return 0x2800 <= code <= 0x28FF or code in _EIGHTHS


def _shapes(code: int, x: float, top: float) -> list[tuple[float, float, float, float]]:
    """Rectangles (x, y, width, height) of one character's cell."""
    if code in _EIGHTHS:
        return [(x, top, CELL_W * _EIGHTHS[code], CELL_H)]
    if not 0x2800 <= code <= 0x28FF:
        return []
    dot_w, dot_h = CELL_W / 2, CELL_H / 4
    return [
        (x + column * dot_w + 0.8, top + row * dot_h + 0.8, dot_w - 1.6, dot_h - 1.6)
        for bit, (column, row) in _DOT_BITS.items()
        if (code - 0x2800) >> bit & 1
    ]
