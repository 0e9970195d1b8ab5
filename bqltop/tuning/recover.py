"""Put back what runs of bqltop that are no more left changed, as far as it is still theirs."""

from __future__ import annotations

import errno
from collections.abc import Sequence
from dataclasses import dataclass

from bqltop.kernel import netns
from bqltop.tuning import journal as journals
from bqltop.tuning.access import Access
from bqltop.tuning.changes import span, subject
from bqltop.tuning.journal import Entry, Journal, JournalError, Leftover
from bqltop.tuning.knobs import KNOBS, PEER_KNOBS, Knob, qdisc_knob


@dataclass(frozen=True, slots=True)
class Restored:
    """What came of one leftover. ``result``: restored, unchanged (it stands at the old value already), gone (the
    device is, or was re-created), changed (somebody set it since) or refused. ``text`` is one line for people."""

    left: Leftover
    result: str
    text: str

    @property
    def ok(self) -> bool:
        return self.result in ("restored", "unchanged", "gone")


def describe(left: Leftover) -> str:
    """``veth0 (netns blue): limit_min of queue 0: 0 -> 8, by root, 2026-11-30T20:54:35``"""
    first, last = left.first, left.last
    knob = knob_of(first)
    now = knob.show(last.kept)
    if last.kept is None:
        now = f"{knob.show(last.asked)} (it is not known whether that was done)"
    what = f"{_where(first)}: {subject(knob.id, (first.queue,))}"
    return f"{what}: {knob.show(first.old.value)} -> {now}, by {last.user}, {last.at}"


def restore(lefts: Sequence[Leftover], journal: Journal, force: bool = False, access=Access) -> list[Restored]:
    """Restore leftovers in the order given. What somebody else has set since stays, unless ``force``."""
    return [_restore(left, journal, force, access) for left in lefts]


def _restore(left: Leftover, journal: Journal, force: bool, access) -> Restored:
    first = left.first
    ids = [entry.id for entry in left.entries]
    where = netns.relocate(first.ns)
    if where is None:
        journal.settle(ids, "gone")
        return Restored(left, "gone", f"{_where(first)}: its network namespace is gone; nothing to restore")
    try:
        end = access(first.device, where, None, first.identity)
    except (OSError, netns.NetnsError) as error:
        if isinstance(error, OSError) and error.errno == errno.ENODEV:
            journal.settle(ids, "gone")
            return Restored(left, "gone", f"{_where(first)}: the device is gone or was re-created; nothing to restore")
        return Restored(left, "refused", f"{_where(first)}: {error}")
    try:
        return _restore_at(end, left, journal, force)
    except (OSError, LookupError, JournalError) as error:
        words = error.strerror if isinstance(error, OSError) else str(error.args[0])
        return Restored(left, "refused", f"{_where(first)}: {subject(first.knob, (first.queue,))}: {words}")
    finally:
        end.close()


def _restore_at(end: Access, left: Leftover, journal: Journal, force: bool) -> Restored:
    first, last, knob = left.first, left.last, knob_of(left.first)
    ids = [entry.id for entry in left.entries]
    what = f"{_where(first)}: {subject(knob.id, (first.queue,))}"
    now = end.read(knob, first.queue)
    if now.value == first.old.value and now.raw == first.old.raw:
        journal.settle(ids, "undone")
        return Restored(left, "unchanged", f"{what} is {knob.show(now.value)}, as it was before")
    if last.kept is not None and now.value != last.kept and not force:
        return Restored(
            left, "changed",
            f"{what} was left at {knob.show(last.kept)}, but somebody has set it to {knob.show(now.value)} since"
            " (--force restores it all the same)",
        )  # fmt: skip
    id = journals.new_id()
    entry = Entry(id=id, at="", device=end.last_name, ns=end.ns, identity=end.identity, knob=knob.id, queue=first.queue,
                  old=now, asked=first.old.value, batch=id, via=last.via, undoes=last.id, **journals.writer())  # fmt: skip
    journal.intend([entry])
    try:
        end.restore(knob, first.queue, first.old)
        kept = end.read(knob, first.queue).value
    except (OSError, LookupError) as error:
        number, words = (error.errno, error.strerror) if isinstance(error, OSError) else (None, str(error.args[0]))
        journal.outcome([id], "refused", (), number, words)
        return Restored(left, "refused", f"{what} stays {knob.show(now.value)}: {words}")
    journal.outcome([id], "done", [kept])
    journal.settle(ids, "undone")
    return Restored(left, "restored", f"{what}: {knob.show(now.value)} back to {span(knob, (kept,))}")


def knob_of(entry: Entry) -> Knob:
    """The knob a journal entry is about, also one of a qdisc that is not there any more."""
    known = {**KNOBS, **PEER_KNOBS}.get(entry.knob)
    return known or qdisc_knob(str((entry.old.raw or {}).get("kind", "")), entry.knob.removeprefix("qdisc-"))


def _where(entry: Entry) -> str:
    return entry.device if entry.ns.name is None else f"{entry.device} (netns {entry.ns.name})"
