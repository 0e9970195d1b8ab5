"""Moments of a recording as a person names them."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo

_RELATIVE = re.compile(r"([+-])(\d{1,12}(?:\.\d{1,9})?)(ms|s|m|min|h)?", re.ASCII)
_CLOCK = re.compile(r"(\d{1,2}):(\d{2})(?::(\d{2})(?:\.(\d{1,6}))?)?", re.ASCII)
_UNITS = {"ms": 1e6, "s": 1e9, None: 1e9, "m": 60e9, "min": 60e9, "h": 3600e9}

EXAMPLES = "14:03:22, 2026-11-30T14:03:22, +90s from the beginning, -5m from the end"


def moment(text: str, span: tuple[int, int], zone: tzinfo | None = None) -> int:
    """The wall-clock time in ns that ``text`` names within a recording from span[0] to span[1]: one of EXAMPLES. A time
    of day is the first such instant after the beginning, in ``zone`` (the host's own). ValueError with a sentence."""
    text = text.strip()
    if found := _RELATIVE.fullmatch(text):
        length = int(float(found[2]) * _UNITS[found[3]])
        return span[0] + length if found[1] == "+" else span[1] - length
    try:
        if found := _CLOCK.fullmatch(text):
            return _time_of_day(found, span[0], zone)
        named = datetime.fromisoformat(text)
        return int((named if named.tzinfo else named.replace(tzinfo=zone)).timestamp() * 1e6) * 1000
    except (ValueError, OverflowError, OSError):
        raise ValueError(f"{text!r} is no time; try {EXAMPLES}") from None


@dataclass(frozen=True, slots=True)
class Timeline:
    """When each sample of a recording (or each moment of a replay) was taken: ``walls`` by the wall clock in ns, which
    somebody may have set on the way, ``elapsed`` in ns since the first, by the clock that nobody sets. Never empty."""

    walls: Sequence[int]
    elapsed: Sequence[int]

    def first_from(self, text: str, zone: tzinfo | None = None) -> int:
        """The number of the first entry not before the moment that ``text`` names, of a time of day the nearest such entry; how
        many there are where none is. ValueError as ``moment``."""
        if _RELATIVE.fullmatch(text.strip()):
            return bisect_left(self.elapsed, self._passed(text))
        named = moment(text, (self.walls[0], self.walls[-1]), zone)
        later = (number for number, wall in enumerate(self.walls) if wall >= named)
        return min(later, key=lambda number: self.walls[number], default=len(self.walls))

    def last_to(self, text: str, zone: tzinfo | None = None) -> int:
        """The number of the last entry not after that moment, of a time of day the nearest; -1 where none is. ValueError as
        ``moment``."""
        if _RELATIVE.fullmatch(text.strip()):
            return bisect_right(self.elapsed, self._passed(text)) - 1
        named = moment(text, (self.walls[0], self.walls[-1]), zone)
        sooner = (number for number in range(len(self.walls) - 1, -1, -1) if self.walls[number] <= named)
        return max(sooner, key=lambda number: self.walls[number], default=-1)

    def _passed(self, text: str) -> int:
        return moment(text, (self.elapsed[0], self.elapsed[-1]))


def _time_of_day(found: re.Match, start_ns: int, zone: tzinfo | None) -> int:
    start = datetime.fromtimestamp(start_ns // 1_000_000_000, zone)
    micro = int((found[4] or "0").ljust(6, "0"))
    named = start.replace(hour=int(found[1]), minute=int(found[2]), second=int(found[3] or 0), microsecond=micro)
    if named < start:
        named += timedelta(days=1)
    return int(named.timestamp()) * 1_000_000_000 + micro * 1000
