"""The text of ``?``: keys, signs and every column, from the one table of figures."""

from __future__ import annotations

from textual.strip import Strip

from bqltop import fields
from bqltop.tui.draw import palette
from bqltop.tui.draw.line import Line, blank, left, rule, wrap

KEYS = (
    ("?", "open and close this page; so does Esc"),
    ("q, Ctrl-C", "leave; everything bqltop attached is taken away again"),
    ("t", "tune: the knobs of the device beside the live view, or away again"),
    ("a", "advice: what one might do about what is going on; a digit there puts it on trial"),
    ("space", "stop drawing and go on; samples are taken all the while"),
    ("l", "all devices of all namespaces; Enter there watches one, Esc comes back"),
    ("p", "the other end of a veth, or the lower device; there again: back"),
    ("P", "both ends of a veth side by side, in a window of 150 columns or more"),
    ("n", "what the device is connected to: bridge or bond, ports, VLANs; Enter goes there"),
    ("Esc", "all queues together; then: close a device opened by l, p or n, and back to where it was opened from"),
    ("Tab, 1-9", "another device, when several are watched"),
    ("e", "all events, with a filter; w writes them to a file"),
    ("r", "record everything to a file in this folder, until r again; bqltop replay shows it"),
    ("b  B", "b: measure A from now on; b again: B, and so to and fro; B: both side by side, and whether that is noise"),
    ("S", "sweep: try several settings one after the other, put all back, and say which was best"),
    ("up, down", "select a queue: the chart then shows that one"),
    ("left, right", "look at the sample before, after: everything shows that moment; space: back to now"),
    (",  .  [  ]", "look a second back, on; a minute back, on"),
    ("<  >", "look at the event before, the next event"),
    ("x  X", "a longer, a shorter span of time in the chart (10 s to an hour)"),
    ("c", "another series first in the chart"),
    ("s", "sort the queues: by number, share stopped, inflight, packets/s"),
    ("z", "fold idle queues into one line, or show them all"),
    ("+  -", "refresh more often, less often"),
    ("d", "diagnostics: what bqltop itself costs, samples missed, probes in force, versions"),
    ("Ctrl-Z", "suspend; fg comes back, the time between is one long window, not a spike"),
)
REPLAY_KEYS = (
    ("space", "stand still, go on; at the end: from the beginning"),
    ("left, right", "one sample back, on; the replay stands from then on"),
    (",  .  [  ]", "a second back, on; a minute back, on"),
    ("<  >", "to the event before, to the next event"),
    ("+  -", "faster, slower: 0.1 to 100 times"),
    ("r  t  S", "of no use here: nothing is recorded, set or tried"),
)
LIST_KEYS = (
    ("Enter", "watch the selected device"),
    ("/", "filter: every word must be in the name, namespace, owner, driver, peer or state; Esc: no filter"),
    ("s  r", "another order; the other way round"),
    ("stopped", "share of eight looks at which one of its queues was stopped: an estimate (needs eBPF)"),
    ("•  .", "is being watched; the namespace bqltop runs in"),
)
TUNING_KEYS = (
    ("up, down", "another knob; left, right: of all TX queues, of queue 0, of queue 1, ..."),
    ("+  -", "step the value; Enter or a digit: type one"),
    ("Enter", "apply; what can cut traffic asks once more and is on trial"),
    ("Tab", "apply on trial: it is taken back by itself unless k keeps it"),
    ("y", "copy the shell command that the change equals"),
    ("u  U", "take back the last change; all of this session"),
    ("R", "restore what an earlier run left changed"),
    ("Esc", "drop the value; close the panel"),
)
SIGNS = (
    ("DRV drv ·", "set now; set at some time in the last second; not set; ? cannot be seen (needs eBPF)"),
    ("DSF", "the same in a narrow window: D or d is DRV, S or s is STK, F or f is FRZ"),
    ("m", "on the bar of inflight: where limit_min lies"),
    ("M", "at the end of that bar: limit stands at limit_max and cannot grow"),
    ("the bar", "inflight over limit: its right end is limit, whatever the unit"),
    ("-", "not to be had: never the same as 0"),
    ("!! ! >", "a fault; costs latency or packets; worth knowing"),
    ("▲", "on the time axis: something was changed then"),
)
QUEUE_FIGURES = (
    "index", "drv_xoff", "stack_xoff", "frozen", "stopped_share", "inflight", "limit", "unit", "limit_min", "limit_max",
    "inflight_p50", "inflight_p99", "ring_used", "ring_size", "packets_per_s", "completed_per_s", "busy_per_s", "dark_buffer_s",
    "stops_driver_per_s", "stops_bql_per_s", "qdisc_sojourn_p50_s", "ring_sojourn_p50_s",
)
QDISC_FIGURES = (
    "kind", "handle", "parent", "packets_per_s", "backlog_packets", "backlog_bytes", "drops_per_s", "requeues_per_s",
    "overlimits_per_s",
)
NAPI_FIGURES = ("device", "napi_id", "polls_per_s", "work_average", "full_share", "work_histogram")
DEVICE_FIGURES = (
    "name", "peer", "driver", "oper_state", "qdisc", "mtu", "tx_queue_len", "own_cpu_share", "softirq_share",
)


def page(width: int) -> list[Strip]:
    """All lines of the help, ``width`` cells wide."""
    lines: list[Strip] = []
    _pairs(lines, "keys", KEYS, width)
    _pairs(lines, "in a replay", REPLAY_KEYS, width)
    _pairs(lines, "in the list of devices", LIST_KEYS, width)
    _pairs(lines, "while tuning", TUNING_KEYS, width)
    _pairs(lines, "signs", SIGNS, width)
    for title, scope, ids in (
        ("TX queues", "queue", QUEUE_FIGURES), ("qdisc", "qdisc", QDISC_FIGURES), ("NAPI", "napi", NAPI_FIGURES),
        ("header", "device", DEVICE_FIGURES),
    ):
        _section(lines, title, width)
        for id in ids:
            _figure(lines, fields.get(scope, id), width)
    _figure(lines, fields.get("queue", "tx_timeouts", "sample"), width)
    return lines


def _section(lines: list[Strip], title: str, width: int) -> None:
    if lines:
        lines.append(blank(width))
    lines.append(rule(title, width))


def _pairs(lines: list[Strip], title: str, pairs: tuple[tuple[str, str], ...], width: int) -> None:
    _section(lines, title, width)
    for key, text in pairs:
        for number, part in enumerate(wrap(text, width - 14)):
            lines.append(Line((left(f" {key}" if not number else "", 13), palette.STRONG), (part, palette.TEXT))
                         .strip(width))


def _figure(lines: list[Strip], field: fields.Field, width: int) -> None:
    """Title and unit, what it means, and in grey where the kernel keeps it."""
    unit = f" ({field.unit})" if field.unit else ""
    first = True
    for text, style in ((field.meaning + unit, palette.TEXT), (field.where, palette.DIM)):
        for part in wrap(text, width - 14):
            lines.append(Line((left(f" {field.title}" if first else "", 13), palette.STRONG), (part, style))
                         .strip(width))
            first = False
