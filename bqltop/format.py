"""Numbers as people read them: pure, the same under every locale, and never wider than a column expects.

Every function takes None and answers ``ABSENT``: a value that is not to be had must not look like 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, tzinfo

ABSENT = "-"

_SI = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
_IEC = ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))
_TIME = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns"))


def three_digits(value: float) -> str:
    """``value`` (below 1000) with three significant digits at most: 9.87, 98.7, 987; no trailing ``.0``."""
    magnitude = abs(value)
    digits = 2 if magnitude < 9.995 else 1 if magnitude < 99.95 else 0
    text = f"{value:.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def count(value: float | None) -> str:
    """An SI count of at most five characters: 0, 512, 71.2k, 1.05M. Whole numbers below 10000 stay whole."""
    if value is None or not math.isfinite(value):
        return ABSENT
    if float(value).is_integer() and abs(value) < 10_000:
        return str(int(value))
    for factor, suffix in _SI:
        if abs(value) >= factor * 0.9995:
            return three_digits(value / factor) + suffix
    return three_digits(value)


def rate(value: float | None) -> str:
    """A number per second, as ``count``; the unit stands in the column's head. Below 10 one decimal is enough."""
    if value is None or not math.isfinite(value):
        return ABSENT
    return count(round(value, 1) if abs(value) < 10 else round(value) if abs(value) < 1000 else value)


def share(value: float | None) -> str:
    """A share (0..1) in percent: 0 %, 3.2 %, 93.1 %, 100 %. Only exactly 0 and 1 lose their decimal, so that a
    little is never shown as nothing nor nearly all as all."""
    if value is None or not math.isfinite(value):
        return ABSENT
    percent = value * 100
    if percent <= 0:
        return "0 %"
    if percent < 0.1:
        return "<0.1 %"
    if 99.9 < percent < 100:
        return ">99.9 %"
    return "100 %" if percent >= 100 else f"{percent:.1f} %"


def seconds(value: float | None) -> str:
    """A duration given in seconds: 850 ns, 3.5 ms, 1.2 s, 2 min 5 s, 3 h 20 min."""
    if value is None or not math.isfinite(value):
        return ABSENT
    if value < 0:
        return "-" + seconds(-value)
    if value == 0:
        return "0 s"
    if value >= 99.95:
        return _long_duration(round(value))
    for factor, unit in _TIME:
        if value >= factor * 0.9995:
            return f"{three_digits(value / factor)} {unit}"
    return "<1 ns"


def _long_duration(whole: int) -> str:
    parts = [(whole // 86400, "d"), (whole // 3600 % 24, "h"), (whole // 60 % 60, "min"), (whole % 60, "s")]
    first = next(i for i, (number, _) in enumerate(parts) if number)
    return " ".join(f"{number} {unit}" for number, unit in parts[first : first + 2] if number)


def nanoseconds(value: float | None) -> str:
    """A duration given in nanoseconds, as ``seconds``."""
    return seconds(None if value is None else value / 1e9)


def milliseconds(value: float | None) -> str:
    """A duration given in milliseconds, as ``seconds``."""
    return seconds(None if value is None else value / 1e3)


def size(value: float | None) -> str:
    """Bytes in powers of 1024: 900 B, 103 KiB, 1.2 MiB."""
    if value is None or not math.isfinite(value):
        return ABSENT
    for factor, unit in _IEC:
        if abs(value) >= factor:
            return f"{three_digits(value / factor)} {unit}"
    return f"{value:.0f} B"


def flag(value: bool | None) -> str:
    """A yes-or-no value in a word."""
    return ABSENT if value is None else "yes" if value else "no"


def text(value: object) -> str:
    """Anything else as it is, but printable. Never hand this to a markup parser."""
    return ABSENT if value is None else printable(str(value))


def printable(name: str) -> str:
    """A text from outside, safe for a terminal: what does not print (a device's name may hold an escape sequence)
    comes out as ``\\x1b``, everything else literally."""
    if name.isprintable():
        return name
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape", "backslashreplace").decode("ascii")
        for letter in name
    )


def cells(value: Sequence[int] | None) -> str:
    """A histogram where there is room for one number only: how many values it holds."""
    return ABSENT if value is None else f"n={count(sum(value))}"


def clock(time_ns: int, zone: tzinfo | None = None, *, fraction: bool = False) -> str:
    """The wall clock time of a CLOCK_REALTIME value, 14:03:22 or 14:03:22.125, in the host's zone."""
    moment = datetime.fromtimestamp(time_ns // 1_000_000_000, zone)
    return f"{moment:%H:%M:%S}" + (f".{time_ns // 1_000_000 % 1000:03d}" if fraction else "")


def timestamp(time_ns: int) -> str:
    """Date and time in UTC after ISO 8601, to the millisecond: for files that travel between hosts."""
    moment = datetime.fromtimestamp(time_ns // 1_000_000_000, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{time_ns // 1_000_000 % 1000:03d}Z"


Formatter = Callable[..., str]
