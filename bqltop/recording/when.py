"""Moments of a recording as a person names them."""

from __future__ import annotations

import re
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


def _time_of_day(found: re.Match, start_ns: int, zone: tzinfo | None) -> int:
    start = datetime.fromtimestamp(start_ns // 1_000_000_000, zone)
    micro = int((found[4] or "0").ljust(6, "0"))
    named = start.replace(hour=int(found[1]), minute=int(found[2]), second=int(found[3] or 0), microsecond=micro)
    if named < start:
        named += timedelta(days=1)
    return int(named.timestamp()) * 1_000_000_000 + micro * 1000
