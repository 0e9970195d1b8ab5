"""The state of the device list: what is shown in which order, what is selected, what is typed. No Textual in here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bqltop.discovery.devices import Key, Listed, Rates
    from bqltop.roster import Roll


@dataclass(frozen=True, slots=True)
class Row:
    """One device of the list. ``stopped``: share of the looks; ``watched``: a tab shows it already."""

    device: Listed
    rates: Rates | None = None
    stopped: float | None = None
    watched: bool = False
    peer_owner: str | None = None
    """Whose namespace the peer is in, where that has no name of its own."""

    @property
    def place(self) -> str:
        """The namespace by name and owner; ours is a dot."""
        namespace, owner = self.device.namespace, self.device.owner
        if namespace.name is None:
            return "."
        if owner is None or namespace.name.startswith("pid:"):
            return owner or namespace.name
        return f"{namespace.name} ({owner})"

    @property
    def words(self) -> str:
        """Everything that a filter looks in."""
        device, peer = self.device, self.device.peer
        parts = (device.name, self.place, device.driver, device.kind, device.qdisc, device.oper_state,
                 peer.name if peer else None, peer.netns if peer else None, self.peer_owner)  # fmt: skip
        return " ".join(filter(None, parts)).casefold()


def _rate(name: str) -> Callable[[Row], float]:
    return lambda row: getattr(row.rates, name) if row.rates else -1.0


SORTS: dict[str, tuple[Callable[[Row], object], bool]] = {
    "pkt/s": (_rate("tx_packets"), True),
    "stopped": (lambda row: -1.0 if row.stopped is None else row.stopped, True),
    "backlog": (lambda row: row.device.backlog_packets, True),
    "requeue/s": (_rate("requeues"), True),
    "drop/s": (_rate("drops"), True),
    "queues": (lambda row: row.device.tx_queues, True),
    "name": (lambda row: row.device.name, False),
    "namespace": (lambda row: row.place, False),
}
"""Title -> (key, largest first)."""


class DeviceTable:
    """``rows`` are those that pass the filter, in order. ``message``: one line about what was tried last."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.total = 0
        self.known = False
        """Whether a first look has been taken."""
        self.sort, self.reverse = "pkt/s", False
        self.filter, self.typing = "", False
        self.selected: Key | None = None
        self.scrolled = 0
        self.message = ""
        self.unreachable: tuple[str, ...] = ()
        self._all: list[Row] = []

    def take(self, roll: Roll) -> None:
        """A new look at all devices."""
        unnamed = [device for device in roll.devices if device.namespace.path.startswith("/proc/")]
        owners = {device.namespace.name: device.owner for device in unnamed if device.owner}
        self._all = [
            Row(device, roll.rates.get(device.key), roll.stopped.get(device.key), device.key in roll.watched,
                owners.get(device.peer.netns) if device.peer else None)
            for device in roll.devices
        ]
        first_rates = bool(roll.rates) and self.selected is None
        self.known, self.total, self.unreachable = True, len(self._all), roll.unreachable
        self._arrange()
        if first_rates and self.rows:
            # What stands first now stays selected, whatever overtakes it.
            self.selected = self.rows[0].device.key

    def _arrange(self) -> None:
        words = self.filter.casefold().split()
        rows = [row for row in self._all if all(word in row.words for word in words)] if words else list(self._all)
        key, largest_first = SORTS[self.sort]
        # Two sorts, of which the second keeps what the first has put in order: devices that are equal stay where they are.
        rows.sort(key=lambda row: (row.place != ".", row.place, row.device.ifindex))
        rows.sort(key=key, reverse=largest_first != self.reverse)
        self.rows = rows

    @property
    def position(self) -> int:
        """Number of the selected row; the first one where the selected device is gone."""
        return next((n for n, row in enumerate(self.rows) if row.device.key == self.selected), 0)

    @property
    def current(self) -> Row | None:
        return self.rows[self.position] if self.rows else None

    def move(self, by: int) -> None:
        if self.rows:
            self.selected = self.rows[max(0, min(len(self.rows) - 1, self.position + by))].device.key

    def follow(self, height: int) -> None:
        """Scroll so that the selected row is among ``height`` visible ones and no room is left empty."""
        position = self.position
        scrolled = max(min(self.scrolled, position), position - height + 1)
        self.scrolled = max(0, min(scrolled, len(self.rows) - height))

    def next_sort(self) -> None:
        names = list(SORTS)
        self.sort, self.reverse = names[(names.index(self.sort) + 1) % len(names)], False
        self._arrange()

    def turn_round(self) -> None:
        self.reverse = not self.reverse
        self._arrange()

    def set_filter(self, text: str) -> None:
        self.filter = text
        self._arrange()
