"""A sweep's result as Markdown, CSV and JSON: settings across, figures down. Pure."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from bqltop import format as fmt
from bqltop.sweep.figures import FIGURES
from bqltop.sweep.plan import Plan, label
from bqltop.sweep.result import Result, Row, Trial

BEST = "*"


def markdown(result: Result, plan: Plan, device: str) -> str:
    """The table for people, who may paste it into a mail, and the recommendation below it."""
    rows = [row for row in result.rows if row.runs]
    shown = [figure for figure in FIGURES if any(row.figures[figure.id] is not None for row in rows)]
    lines = [["", *(f"{row.label}{' ' + BEST if row.best else ''}" for row in rows)]]
    lines += [[figure.title, *(figure.format(row.figures[figure.id]) for row in rows)] for figure in shown]
    if len({row.runs for row in rows}) > 1:
        lines.append(["runs", *(str(row.runs) for row in rows)])
    head = f"{device}: medians of {plan.runs} run{'s' if plan.runs != 1 else ''} of {fmt.seconds(plan.seconds)} each"
    text = [fmt.printable(head), "", *_table(lines), "", f"{BEST} no other setting is better in packets/s or latency "
            "without being worse in the other."]  # fmt: skip
    text += [f"Not measured: {row.label}: {row.trouble}" for row in result.rows if row.trouble and not row.runs]
    return "\n".join([*text, "", recommendation(result)])


def recommendation(result: Result) -> str:
    """One sentence."""
    chosen = result.recommendation
    if chosen.setting is None:
        return f"No recommendation: {chosen.reason}."
    return f"Recommended: {label(chosen.setting) if chosen.setting else 'leave it as it was'}: {chosen.reason}."


def _table(lines: Sequence[Sequence[str]]) -> list[str]:
    lines = [[cell.replace("|", "\\|") for cell in line] for line in lines]
    widths = [max(3, *(len(line[i]) for line in lines)) for i in range(len(lines[0]))]

    def row(cells: Sequence[str]) -> str:
        shown = [cells[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(cells[1:], widths[1:], strict=True))]
        return f"| {' | '.join(shown)} |"

    rule = "|".join(["", "-" * (widths[0] + 2), *("-" * (width + 1) + ":" for width in widths[1:]), ""])
    return [row(lines[0]), rule, *map(row, lines[1:])]


def to_csv(result: Result) -> str:
    """One line a setting, figures in seconds, shares and counts; empty where there is none."""
    out = io.StringIO()
    knobs = list(dict.fromkeys(knob for row in result.rows for knob, _ in row.setting))
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["setting", *knobs, "runs", "pareto_best", "recommended", *(figure.id for figure in FIGURES), "trouble"])
    for row in result.rows:
        values = dict(row.setting)
        chosen = row.setting == result.recommendation.setting
        writer.writerow([row.label, *(values.get(knob, "") for knob in knobs), row.runs, int(row.best), int(chosen),
                         *("" if (v := row.figures[f.id]) is None else v for f in FIGURES), row.trouble or ""])  # fmt: skip
    return out.getvalue()


def to_json(result: Result, plan: Plan, trials: Sequence[Trial], device: str, stopped: str | None) -> dict:
    """Everything, for machines (docs/sweep.md)."""
    chosen = result.recommendation
    return {
        "device": device, "runs": plan.runs, "seconds": plan.seconds, "warm_up": plan.warm_up, "stopped": stopped,
        "latency": result.latency,
        "settings": [_setting_json(row, row.setting == chosen.setting) for row in result.rows],
        "trials": [
            {"setting": dict(t.setting), "run": t.run, "figures": t.measured.figures if t.measured else None,
             "trouble": t.trouble}
            for t in trials
        ],
        "recommended": None if chosen.setting is None else dict(chosen.setting), "reason": chosen.reason,
    }  # fmt: skip


def _setting_json(row: Row, recommended: bool) -> dict:
    return {
        "setting": dict(row.setting), "runs": row.runs, "figures": row.figures, "pareto_best": row.best,
        "recommended": recommended, "trouble": row.trouble,
    }  # fmt: skip
