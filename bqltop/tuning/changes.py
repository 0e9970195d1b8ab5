"""What is about to be changed, and what came of it: plain records, and the warnings worth giving before. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bqltop.tuning.access import Reading
from bqltop.tuning.knobs import Knob, Setting, Source, Value, parse_qdisc


@dataclass(frozen=True, slots=True)
class Plan:
    """One knob, thought through but not turned.

    ``device``/``netns``: the end it is on, by name. ``queues`` are those it goes to, (None,) for the whole device;
    ``old`` is what they had when this was planned (the change itself reads again). ``command``: the shell command
    it equals. ``cuts_traffic``: how it can cut traffic, None if it cannot. ``refused`` (and
    ``errno``): why it will not be tried.
    """

    knob: Knob
    device: str
    netns: str | None
    queues: tuple[int | None, ...]
    old: tuple[Value, ...]
    asked: Value
    command: str
    warnings: tuple[str, ...] = ()
    cuts_traffic: str | None = None
    refused: str | None = None
    errno: int | None = None

    @property
    def subject(self) -> str:
        """What it is about, in a few words: ``limit_min of queue 3``."""
        return subject(self.knob.id, self.queues)


@dataclass(frozen=True, slots=True)
class Change:
    """What came of a plan.

    ``old`` and ``kept`` run along ``plan.queues``; ``kept`` is empty where reading back failed. ``text`` (and
    ``errno`` when the kernel gave one): why it was refused, None when it was not. ``pending``: the limit follows
    only with the next completion. ``note``: what the person should know, one line. ``trial_until``: the tuner's
    clock at which it reverts by itself, None when it stays. ``ids`` are the journal's; ``absorbed`` those of trials
    that this change took over. ``undo``: it takes another change back.
    """

    plan: Plan
    old: tuple[Reading, ...]
    kept: tuple[Value, ...]
    at: float
    ids: tuple[str, ...] = ()
    errno: int | None = None
    text: str | None = None
    pending: bool = False
    note: str | None = None
    trial_until: float | None = None
    undo: bool = False
    absorbed: tuple[str, ...] = ()

    @property
    def refused(self) -> bool:
        return self.text is not None

    @property
    def changed(self) -> bool:
        """Whether something was written that could be taken back."""
        return not self.refused and bool(self.ids)

    @property
    def sentence(self) -> str:
        """One line for people: what was, what is, and what to know about it."""
        knob, plan = self.plan.knob, self.plan
        old = span(knob, [reading.value for reading in self.old] or plan.old)
        if self.refused:
            number = f" (errno {self.errno})" if self.errno else ""
            stays = f" stays {old}" if self.old or plan.old else ""
            return f"{plan.subject}{stays}: {self.text}{number}"
        new = span(knob, self.kept) if self.kept else f"{knob.show(plan.asked)} (not read back)"
        verb = "back to" if self.undo else "->"
        return f"{plan.subject}: {old} {verb} {new}" + (f"; {self.note}" if self.note else "")


def span(knob: Knob, values: Sequence[Value]) -> str:
    """The values of several queues in one word: ``8``, or ``8..64`` where they differ."""
    if not values:
        return "-"
    shown = list(dict.fromkeys(knob.show(value) for value in values))
    return shown[0] if len(shown) == 1 else f"{knob.show(min(values))}..{knob.show(max(values))}"


def subject(knob_id: str, queues: Sequence[int | None]) -> str:
    """``limit_min of queue 3``, ``limit_min of all 8 queues``, ``tx-usecs``."""
    numbers = [queue for queue in queues if queue is not None]
    if not numbers:
        return knob_id
    if len(numbers) == 1:
        return f"{knob_id} of queue {numbers[0]}"
    return f"{knob_id} of {len(numbers)} queues"


def satisfied(knob: Knob, asked: Value, kept: Value) -> bool:
    """Whether what the kernel keeps is what was asked (a qdisc has parameters nobody asked for)."""
    if knob.source is not Source.QDISC:
        return asked == kept
    (kind, wanted), (kept_kind, has) = parse_qdisc(str(asked)), parse_qdisc(str(kept))
    return kind == kept_kind and all(has.get(name) == value for name, value in wanted.items())


def read_back_note(knob: Knob, asked: Value, kept: Sequence[Value], pending: bool) -> str | None:
    """``asked 30, kernel keeps 32``, and whether a limit still has to follow."""
    notes = []
    if kept and not all(satisfied(knob, asked, value) for value in kept):
        notes.append(f"asked {knob.show(asked)}, kernel keeps {span(knob, kept)}")
    if pending:
        notes.append("pending until the next completion")
    return "; ".join(notes) or None


def warnings(setting: Setting, asked: Value, now: Callable[[str], tuple[Value, ...]]) -> tuple[str, ...]:
    """What should be known before turning the knob. ``now(id)`` gives the values another knob has, () for none."""
    id = setting.knob.id.removeprefix("peer-")
    found = [warning for rule in _RULES.get(id, ()) if (warning := rule(setting, asked, now))]
    return tuple(found)


def _min_above_max(setting, asked, now):
    high = min(now("limit_max"), default=None)
    if high is not None and asked > high:
        return f"limit_min {asked} is above limit_max {high}: the kernel takes it in silence, and limit_max wins"
    return None


def _max_below_min(setting, asked, now):
    low = max(now("limit_min"), default=None)
    if low is not None and asked < low:
        return f"limit_max {asked} is below limit_min {low}: the kernel takes it in silence, and limit_max wins"
    return None


def _less_than_a_packet(setting, asked, now):
    if setting.unit == "bytes" and 0 < asked < 64:
        return f"this driver counts bytes: {asked} bytes is less than one packet"
    return None


def _adaptive(direction: str):
    def rule(setting, asked, now):
        if 1 in now(f"adaptive-{direction}"):
            return f"adaptive-{direction} is on: the driver may change {setting.knob.id} again by itself"
        return None

    return rule


def _tso_on_veth(setting, asked, now):
    if asked and now("peer-gro"):
        return "with TSO on, packets go to the peer without the ring: nothing can be queued, stopped or limited there"
    return None


def _gro_off_on_veth(setting, asked, now):
    if setting.knob.peer and not asked:
        return "without GRO at the peer packets go to it without the ring, unless an XDP program is there"
    return None


def _defer_needs_timeout(setting, asked, now):
    id = "peer-gro_flush_timeout" if setting.knob.peer else "gro_flush_timeout"
    return f"no effect while {id} is 0" if asked and 0 in now(id) else None


def _no_backpressure(setting, asked, now):
    if str(asked).split()[0] == "noqueue":
        return "noqueue has nowhere to keep a packet: whatever the driver does not take is lost"
    return None


_RULES = {
    "limit_min": (_min_above_max, _less_than_a_packet),
    "limit_max": (_max_below_min, _less_than_a_packet),
    "tx-usecs": (_adaptive("tx"),),
    "tx-frames": (_adaptive("tx"),),
    "rx-usecs": (_adaptive("rx"),),
    "rx-frames": (_adaptive("rx"),),
    "tso": (_tso_on_veth,),
    "gro": (_gro_off_on_veth,),
    "napi_defer_hard_irqs": (_defer_needs_timeout,),
    "qdisc": (_no_backpressure,),
}
