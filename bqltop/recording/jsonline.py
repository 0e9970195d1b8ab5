"""One JSON line: how bqltop writes it and the careful way to read one that a stranger wrote."""

from __future__ import annotations

import json
import math

from bqltop.recording.codec import DecodeError

_ENCODER = json.JSONEncoder(separators=(",", ":"), allow_nan=False, check_circular=False)


def dumps(plain: dict) -> str:
    """A compact line without its newline, ASCII only: any name survives any terminal, pipe and editor."""
    try:
        return _ENCODER.encode(plain)
    except ValueError:  # a NaN or an infinity, for which JSON has no word
        return _ENCODER.encode(_finite(plain))


def _finite(value):
    if isinstance(value, dict):
        return {key: _finite(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _no_constant(name: str):
    raise ValueError(f"{name} is not JSON")


def loads(line: bytes | str) -> object:
    """The value of a JSON line. Raises DecodeError with one short sentence for anything that is not JSON, for NaN and
    for nesting deeper than the parser can follow."""
    try:
        return json.loads(line, parse_constant=_no_constant)
    except RecursionError:
        raise DecodeError("nested too deeply") from None
    except (ValueError, UnicodeError):  # also a number of more digits than Python converts
        raise DecodeError("not JSON") from None
