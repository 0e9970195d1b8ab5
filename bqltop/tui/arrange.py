"""Where each panel of the live screen goes, for any size of the terminal. Pure: sizes in, regions out."""

from __future__ import annotations

from dataclasses import dataclass

from textual.geometry import Region

LEAST = (40, 10)
"""Below this size (columns, rows) the screen only says so."""
SIDE_LEAST = 44
TWO_COLUMNS = 76


@dataclass(frozen=True, slots=True)
class Wants:
    """What the panels would like: lines of the queue table, of the qdisc tree and of the NAPI list (heads not
    counted), whether the panel at the side (tuning) is open, whether there is a line of tabs, and lines about the
    holders of a tun."""

    queues: int = 1
    qdiscs: int = 1
    napis: int = 1
    side: bool = False
    tabs: bool = False
    tun: int = 0


def arrange(width: int, height: int, wants: Wants) -> dict[str, Region]:
    """Regions by panel name; a panel without a region is not shown. Too small: only ``small``.

    Panels never overlap and never reach beyond the terminal; header, verdict, queues and keys are always there.
    """
    if width < LEAST[0] or height < LEAST[1]:
        return {"small": Region(0, 0, max(0, width), max(0, height))}
    head, verdict = _head_heights(width, height)
    regions = {"header": Region(0, 0, width, head), "keys": Region(0, height - 1, width, 1)}
    top, bottom = head, height - 1
    if wants.tabs:
        regions["tabs"] = Region(0, top, width, 1)
        top += 1
    left = width
    if wants.side:
        if width >= SIDE_LEAST + TWO_COLUMNS - 6:
            side = max(SIDE_LEAST, width // 3)
            left = width - side
            regions["side"] = Region(left, top, side, bottom - top)
        else:
            regions["verdict"] = Region(0, top, width, verdict)
            table = min(wants.queues + 2, max(3, (bottom - top - verdict) // 4))
            regions["queues"] = Region(0, top + verdict, width, table)
            start = top + verdict + table
            regions["side"] = Region(0, start, width, bottom - start)
            return regions
    regions["verdict"] = Region(0, top, left, verdict)
    _body(regions, left, top + verdict, bottom, wants)
    return regions


def _head_heights(width: int, height: int) -> tuple[int, int]:
    """Rows of the header and of the verdict."""
    if height < 16:
        return 1, 2
    if height < 28:
        return 1, 3 if width < 140 else 2
    return 2, 4 if height < 44 else 5


def _body(regions: dict[str, Region], width: int, top: int, bottom: int, wants: Wants) -> None:
    """The queue table, and below it chart and NAPI, then qdiscs and events, as far as there is room."""
    room = bottom - top
    below = room - _table_height(room, wants.queues)
    if below < 5:
        regions["queues"] = Region(0, top, width, room)
        return
    regions["queues"] = Region(0, top, width, room - below)
    top = bottom - below
    lower = _lower_height(below, wants.qdiscs + 2)
    right = max(34, min(64, width * 2 // 5)) if width >= TWO_COLUMNS else 0
    left = width - right - (1 if right else 0)
    holders = min(wants.tun, max(0, below - lower - 5))
    regions["chart"] = Region(0, top, left, below - lower - holders)
    if holders:
        regions["tun"] = Region(0, bottom - lower - holders, left, holders)
    if lower:
        regions["qdiscs"] = Region(0, bottom - lower, left, lower)
    if not right:
        return
    napi = below if below < 10 else min(below - 4, wants.napis + 10) if below >= 15 else below - lower
    regions["napi"] = Region(width - right, top, right, napi)
    if napi < below:
        regions["events"] = Region(width - right, top + napi, right, below - napi)


def _table_height(room: int, queues: int) -> int:
    """The table takes what it needs (rule, titles, queues), but leaves the rest of the screen over half the room."""
    return min(queues + 2, max(4, room * 2 // 5 if room < 40 else room * 9 // 20))


def _lower_height(below: int, wanted: int) -> int:
    """Rows for the qdiscs, rule and titles included, of the ``below`` rows under the queue table."""
    if below < 10:
        return 0
    most = below // 3 if below < 24 else below * 2 // 5
    return min(max(3, wanted), max(4, most))
