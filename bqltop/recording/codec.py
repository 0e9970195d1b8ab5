"""Samples as plain JSON values and back: the shape of ``--json`` and of a recording's lines (docs/json.md).

``to_dict`` trusts its input. ``from_dict`` trusts nothing: a recording may come from anybody, so every value's type
and size is checked against the annotations of bqltop.model and what does not fit is a ``DecodeError``.
Imports nothing that needs Linux.
"""

from __future__ import annotations

import math
import types
import typing
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from operator import attrgetter

from bqltop import histogram, model
from bqltop.model import SCHEMA, Event, Sample
from bqltop.window import Window

MAX_LIST = 65_536
"""Longest list accepted: as many queues as a device can have (IFLA_NUM_TX_QUEUES is 16 bit in practice)."""
MAX_TEXT = 4096
MAX_INT = 1 << 64

CELLS = {"work_histogram": histogram.LINEAR_WORK_CELLS}
"""Number of cells by field name; every other histogram is LOG_LINEAR."""


class DecodeError(ValueError):
    """A value that is not what its name promises. The message is one line and says where."""


# ---- to plain values


@cache
def _reader(cls: type) -> tuple[tuple[str, ...], Callable, tuple[str, ...], tuple[str, ...]]:
    """Names of a record's fields, a getter of them all at once, which of them are histograms, and which hold records or
    several values."""
    hints = typing.get_type_hints(cls)
    names = tuple(hints)
    histograms = tuple(name for name in names if name.endswith("_histogram"))
    nested = tuple(name for name in names if name not in histograms and _holds_more(hints[name]))
    return names, attrgetter(*names), histograms, nested


def _holds_more(hint) -> bool:
    return typing.get_origin(hint) is tuple or any(map(is_dataclass, (hint, *typing.get_args(hint))))


def trimmed(cells: tuple[int, ...] | None) -> list[int] | None:
    """A histogram without the zeros at its end: most cells never fill."""
    if cells is None:
        return None
    end = len(cells)
    while end and not cells[end - 1]:
        end -= 1
    return list(cells[:end])


def record_to_dict(record) -> dict | None:
    """One record (QueueSample, NapiWindow, ...) as a dict by its fields' names, nested records and histograms included."""
    if record is None:
        return None
    names, get, histograms, nested = _reader(type(record))
    plain = dict(zip(names, get(record), strict=True))
    for name in histograms:
        plain[name] = trimmed(plain[name])
    for name in nested:
        plain[name] = _plain(plain[name])
    return plain


def _plain(value):
    """A field of a record or of a sample as a JSON value."""
    if is_dataclass(value):
        return record_to_dict(value)
    if isinstance(value, tuple):
        return [_plain(entry) for entry in value]
    return value


FIRST = ("schema", "time_ns", "stream", "monotonic_ns", "epoch", "present", "device", "probes")
_SAMPLE_NAMES = (*FIRST, *(f.name for f in fields(Sample) if f.name not in FIRST))


def to_dict(sample: Sample, window: Window | None = None, *, with_window: bool = True) -> dict:
    """A sample as JSON values; ``window`` is None where there is nothing to compare with.

    The order of the keys is part of the format: ``schema``, ``time_ns`` and ``stream`` come first, so that a reader can find its
    way through a long file without parsing every line.
    """
    plain = {name: _plain(getattr(sample, name)) for name in _SAMPLE_NAMES}
    if with_window:
        plain["window"] = window_to_dict(window)
    return plain


def window_to_dict(window: Window | None) -> dict | None:
    """The window's figures as JSON values, without the sample it ends with."""
    if window is None:
        return None
    return {
        "seconds": window.seconds,
        "queues": [record_to_dict(queue) for queue in window.queues],
        "qdiscs": [record_to_dict(qdisc) for qdisc in window.qdiscs],
        "napis": [record_to_dict(napi) for napi in window.napis],
        "link": record_to_dict(window.link),
        "own_cpu_share": window.own_cpu_share,
        "softirq_share": window.softirq_share,
    }


# ---- and back


def from_dict(plain: object) -> Sample:
    """The Sample that ``to_dict`` was given. Unknown names are ignored (a later version may add some), ``window`` too.
    Raises DecodeError for anything else that does not fit, also for a newer schema."""
    if not isinstance(plain, dict):
        raise DecodeError("not a sample: no JSON object")
    check_schema(plain.get("schema"))
    return _decoder(Sample)(plain, "sample")


def event_from_dict(plain: object) -> Event:
    """An Event from its dict; DecodeError where it is none."""
    return _decoder(Event)(plain, "event")


def check_schema(schema: object) -> None:
    """Raises DecodeError unless ``schema`` is a version that this bqltop can read."""
    if type(schema) is not int or schema < 1:
        raise DecodeError("no schema version")
    if schema > SCHEMA:
        raise DecodeError(f"schema {schema} is from a newer bqltop; this one reads up to {SCHEMA}")


def _int(value, where):
    if type(value) is not int or not -MAX_INT < value < MAX_INT:
        raise DecodeError(f"{where} is not a 64-bit whole number")
    return value


def _bool(value, where):
    if type(value) is not bool:
        raise DecodeError(f"{where} is not true or false")
    return value


def _float(value, where):
    if type(value) not in (int, float) or not -MAX_INT < value < MAX_INT or not math.isfinite(value):
        raise DecodeError(f"{where} is not a number")
    return float(value)


def _str(value, where):
    if type(value) is not str or len(value) > MAX_TEXT:
        raise DecodeError(f"{where} is not a text of at most {MAX_TEXT} characters")
    return value


def _unit(value, where):
    try:
        return model.Unit(value)
    except ValueError:
        raise DecodeError(f"{where} is neither packets nor bytes") from None


_PLAIN = {int: _int, bool: _bool, float: _float, str: _str, model.Unit: _unit}


@cache
def _decoder(hint) -> Callable[[object, str], object]:
    """The checking function for a type annotation of bqltop.model."""
    if hint in _PLAIN:
        return _PLAIN[hint]
    if is_dataclass(hint):
        return _record_decoder(hint)
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return _union_decoder(arguments)
    if origin is tuple:
        return _list_decoder(_decoder(arguments[0]))
    if origin is dict:
        return _dict_decoder(_decoder(arguments[1]))
    raise TypeError(f"no decoder for {hint}")


def _union_decoder(arguments):
    inner = [_decoder(argument) for argument in arguments if argument is not type(None)]
    nullable = type(None) in arguments
    first, rest = inner[0], inner[1:]

    def decode(value, where):
        if value is None and nullable:
            return None
        for other in rest:
            try:
                return other(value, where)
            except DecodeError:
                continue
        return first(value, where)

    return decode


def _list_decoder(inner):
    def decode(value, where):
        if type(value) is not list or len(value) > MAX_LIST:
            raise DecodeError(f"{where} is not a list of at most {MAX_LIST} entries")
        return tuple([inner(entry, where) for entry in value])

    return decode


def _dict_decoder(inner):
    def decode(value, where):
        if type(value) is not dict or len(value) > MAX_LIST:
            raise DecodeError(f"{where} is not an object")
        return {_str(key, where): inner(entry, f"{where}.{key:.40}") for key, entry in value.items()}

    return decode


def _cells_decoder(length):
    def decode(value, where):
        if value is None:
            return None
        if type(value) is not list or len(value) > length:
            raise DecodeError(f"{where} is not a list of at most {length} cells")
        for count in value:
            if type(count) is not int or not 0 <= count < MAX_INT:
                raise DecodeError(f"{where} holds something else than counts")
        return tuple(value) + (0,) * (length - len(value))

    return decode


def _record_decoder(cls):
    hints = typing.get_type_hints(cls)
    plan = []
    for f in fields(cls):
        if f.name.endswith("_histogram"):
            decode = _cells_decoder(CELLS.get(f.name, histogram.LOG_LINEAR_CELLS))
        else:
            decode = _decoder(hints[f.name])
        required = f.default is MISSING and f.default_factory is MISSING
        plan.append((f.name, decode, required))

    def decode(value, where):
        if type(value) is not dict:
            raise DecodeError(f"{where} is not an object")
        known = {}
        for name, inner, required in plan:
            if name in value:
                known[name] = inner(value[name], f"{where}.{name}")
            elif required:
                raise DecodeError(f"{where} lacks {name}")
        return cls(**known)

    return decode
