"""Writes the generated parts of docs/*.md from bqltop.fields: ``python -m bqltop.output.docs`` (``--check`` only looks).

A page says where a table goes with ``<!-- table: SCOPE SOURCE -->`` ... ``<!-- end -->``; everything else in the page
is written by hand.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from bqltop import fields
from bqltop.output import csv_rows
from bqltop.output.prometheus import METRICS

DOCS = Path(__file__).resolve().parents[2] / "docs"
_MARK = re.compile(r"(<!-- table: (?P<what>[a-z ]+) -->\n).*?(<!-- end -->)", re.DOTALL)
_TYPES = {"counter": "integer", "rate": "number", "share": "number 0..1", "state": "boolean", "text": "text"}
_SHAPES = {"peer": "object", "extra": "object", "options": "object", "flags": "list", "napi_commands": "list"}


def _type(field: fields.Field) -> str:
    if field.kind == "gauge":
        return "number" if field.source == "window" else "integer"
    if field.kind == "histogram":
        return "cells"
    return _SHAPES.get(field.id) or _TYPES[field.kind]


def _rows(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines)


def table(what: str) -> str:
    """The Markdown of one table: "queue sample", "csv", "prometheus". Raises KeyError for an unknown one."""
    if what == "csv":
        return _rows(["column"], [[f"`{name}`"] for name in csv_rows.HEADER])
    if what == "prometheus":
        rows = [[f"`{m.exposed}`", m.kind, ", ".join(m.labels), m.help] for m in METRICS]
        return _rows(["metric", "type", "labels", "meaning"], rows)
    scope, source = what.split()
    chosen = list(fields.of(scope, source))
    if not chosen:
        raise KeyError(what)
    rows = [[f"`{f.id}`", _type(f), f.unit, f.meaning, f.where] for f in chosen]
    return _rows(["name", "type", "unit", "meaning", "where it comes from"], rows)


def filled(page: str) -> str:
    """The page with every generated table renewed."""
    return _MARK.sub(lambda found: found[1] + table(found["what"]) + found[3], page)


def main(arguments: list[str]) -> int:
    """Renew the pages, or with ``--check`` say which are out of date (status 1)."""
    stale = 0
    for path in sorted(DOCS.glob("*.md")):
        before = path.read_text(encoding="utf-8")
        after = filled(before)
        if before == after:
            continue
        stale += 1
        if "--check" in arguments:
            print(f"docs/{path.name} is out of date: python -m bqltop.output.docs", file=sys.stderr)
        else:
            path.write_text(after, encoding="utf-8")
    return 1 if stale and "--check" in arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
