"""``bqltop --json`` and ``--text`` without a device: all devices of all namespaces, once."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence

from bqltop import format as fmt
from bqltop.discovery.devices import Listed, Rates
from bqltop.roster import Roll, Roster

BETWEEN_S = 0.2
"""From the first look to the second: rates need two."""


def look(use_bpf: bool = True) -> Roll:
    """All devices, with rates over a moment."""
    roster = Roster(use_bpf=use_bpf)
    try:
        roster.list()
        time.sleep(BETWEEN_S)
        return roster.list()
    finally:
        roster.close()


def as_json(roll: Roll) -> str:
    """One JSON object a line, one line a device (docs/json.md)."""
    lines = (json.dumps(_plain(device, roll.rates.get(device.key), roll.stopped.get(device.key))) for device in roll.devices)
    return "".join(f"{line}\n" for line in lines)


def _plain(device: Listed, rates: Rates | None, stopped: float | None) -> dict:
    return {
        "name": device.name,
        "ifindex": device.ifindex,
        "netns": device.namespace.name,
        "netns_path": device.namespace.path if device.namespace.name else None,
        "owner": device.owner,
        "driver": device.driver,
        "kind": device.kind,
        "up": device.up,
        "oper_state": device.oper_state,
        "peer": {"ifindex": device.peer.ifindex, "name": device.peer.name, "netns": device.peer.netns} if device.peer else None,
        "bql": device.bql,
        "unit": str(device.unit) if device.unit else None,
        "tx_queues": device.tx_queues,
        "qdisc": device.qdisc,
        "backlog_packets": device.backlog_packets,
        "backlog_bytes": device.backlog_bytes,
        "packets_per_s": rates.tx_packets if rates else None,
        "bytes_per_s": rates.tx_bytes if rates else None,
        "rx_packets_per_s": rates.rx_packets if rates else None,
        "requeues_per_s": rates.requeues if rates else None,
        "drops_per_s": rates.drops if rates else None,
        "stopped_share": stopped,
    }


def as_text(roll: Roll) -> str:
    """A table for people; a device's row says in its first two words what to type: name and namespace."""
    rows = [["device", "netns", "owner", "driver", "state", "peer", "bql", "queues", "pkt/s", "stopped", "backlog", "requeue/s"]]
    rows += [_words(device, roll.rates.get(device.key), roll.stopped.get(device.key)) for device in roll.devices]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ("  ".join(word.ljust(width) for word, width in zip(row, widths, strict=True)).rstrip() for row in rows)
    return "".join(f"{line}\n" for line in lines)


def _words(device: Listed, rates: Rates | None, stopped: float | None) -> Sequence[str]:
    peer = "-"
    if device.peer:
        peer = device.peer.name or f"index {device.peer.ifindex}"
        peer += f"@{device.peer.netns}" if device.peer.netns else ""
    bql = "?" if device.bql is None else str(device.unit or "yes") if device.bql else "no"
    words = (
        device.name, device.namespace.name or ".", device.owner or "-", device.driver or device.kind or "-",
        device.oper_state.lower(), peer, bql, str(device.tx_queues), fmt.rate(rates.tx_packets if rates else None),
        fmt.share(stopped), fmt.count(device.backlog_packets), fmt.rate(rates.requeues if rates else None),
    )  # fmt: skip
    return [fmt.printable(word) for word in words]
