"""Turn the knobs of one device, see what the kernel kept, take it back.

Usable from a Python prompt and from any thread::

    with Tuner("veth0") as tuner:
        (plan,) = tuner.plan({"tx-usecs": "50"})
        change = tuner.apply(plan, trial_seconds=10)
        tuner.undo()
"""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import time
from collections.abc import Callable, Iterator

from bqltop.kernel import netns
from bqltop.model import Event, Namespace, Sample
from bqltop.tuning import journal as journals
from bqltop.tuning import shell
from bqltop.tuning.access import Access, Reading
from bqltop.tuning.changes import Change, Plan, read_back_note, satisfied, span
from bqltop.tuning.ends import words
from bqltop.tuning.foreign import Foreign
from bqltop.tuning.journal import Entry, Journal, JournalError, NoJournal
from bqltop.tuning.knobs import Source, Value
from bqltop.tuning.planner import Planner, single

LIMITS = ("limit_min", "limit_max")

Step = Callable[[str], None]
"""Called with the name of each step of a change; tests end the process there."""


class Tuner(Planner):
    """The knobs of one device and, on a veth, of its peer. Raises OSError(ENODEV) when there is no such device.

    ``ns``: the device's namespace, None for ours. ``clock`` gives seconds (monotonic) for trials. ``access`` makes
    the reader and writer of one end: ``access(name, ns, driver)``.
    """

    def __init__(self, device: str, ns: Namespace | None = None, journal: Journal | NoJournal | None = None, *,
                 read_only: bool = False, clock: Callable[[], float] = time.monotonic, access=Access,
                 step: Step = lambda name: None):  # fmt: skip
        self.journal = journal or Journal()
        super().__init__(device, ns or netns.current(), read_only=read_only, access=access)
        self.changes: list[Change] = []
        """In force and not taken back, oldest first."""
        self._clock, self._step = clock, step
        self._closed = False
        self._foreign = Foreign(self._ends(), self.ns)

    def close(self) -> None:
        """Let go of the device; changes stay as they are (``leave`` decides about those). Safe to call twice."""
        if self._closed:
            return
        self._closed = True
        self._foreign.close()
        for end in self._ends():
            end.close()

    def __enter__(self) -> Tuner:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # doing

    def apply(self, plan: Plan, trial_seconds: float | None = None) -> Change:
        """Do it: journal, write, read back. Never raises for what the kernel or the journal refuses: the Change says
        so. With several queues it is all or none. With ``trial_seconds`` it reverts by itself after that (``tick``).
        """
        with self._lock:
            if plan.refused is not None:
                return Change(plan, (), (), self._clock(), errno=plan.errno, text=plan.refused)
            end = self.peer if plan.knob.peer else self.own
            try:
                end.confirm()
                old = tuple(end.read(plan.knob, queue) for queue in plan.queues)
            except (OSError, LookupError) as error:
                return self._refusal(plan, (), error)
            if all(reading.value == plan.asked for reading in old):
                return Change(plan, old, (plan.asked,) * len(old), self._clock(), note="that is what it was")
            entries = self._entries(end, plan, old)
            self._step("before intent")
            try:
                self.journal.intend(entries)
            except JournalError as error:
                return self._refusal(plan, old, error)
            self._step("after intent")
            change = self._write(end, plan, old, entries)
            if change.changed:
                until = None if trial_seconds is None else change.at + trial_seconds
                change = self._remember(dataclasses.replace(change, trial_until=until))
            return change

    def _remember(self, change: Change) -> Change:
        """A trial of the same values that is still running is absorbed: the way back leads to before it."""
        for trial in self.changes[:]:
            same = trial.plan.knob == change.plan.knob and trial.plan.queues == change.plan.queues
            if same and trial.trial_until is not None:
                self.changes.remove(trial)
                change = dataclasses.replace(change, old=trial.old, absorbed=trial.ids + trial.absorbed)
        self.changes.append(change)
        return change

    def _entries(self, end: Access, plan: Plan, old: tuple[Reading, ...], undoes: tuple[str, ...] = ()) -> list[Entry]:
        batch, who = journals.new_id(), journals.writer()
        ids = [journals.new_id() for _ in plan.queues]
        return [
            Entry(id=ids[i], at="", device=end.last_name, ns=end.ns, identity=end.identity, knob=plan.knob.id, queue=queue,
                  old=old[i], asked=plan.asked, batch=batch, via=self.own.last_name,
                  undoes=undoes[i] if undoes else None, **who)
            for i, queue in enumerate(plan.queues)
        ]  # fmt: skip

    def _write(self, end: Access, plan: Plan, old: tuple[Reading, ...], entries: list[Entry]) -> Change:
        ids = tuple(entry.id for entry in entries)
        for done, queue in enumerate(plan.queues):
            try:
                end.write(plan.knob, queue, plan.asked)
                self._step(f"after write {done}")
            except (OSError, ValueError) as error:
                back = self._roll_back(end, plan, old, done)
                change = self._refusal(plan, old, error)
                complaint = self.journal.outcome(ids, "refused", (), change.errno, change.text)
                note = "; ".join(filter(None, (back, complaint))) or None
                return dataclasses.replace(change, note=note)
        return self._read_back(end, plan, old, ids)

    def _roll_back(self, end: Access, plan: Plan, old: tuple[Reading, ...], done: int) -> str | None:
        """Undo the queues already written when a later one was refused; what could not be undone, as a sentence."""
        for i in reversed(range(done)):
            try:
                end.restore(plan.knob, plan.queues[i], old[i])
            except OSError as error:
                return f"queue {plan.queues[i]} could not be set back: {error.strerror}"
        return None

    def _read_back(self, end: Access, plan: Plan, old: tuple[Reading, ...], ids: tuple[str, ...]) -> Change:
        pending, kept, note = False, (), None
        try:
            kept = tuple(end.read(plan.knob, queue).value for queue in plan.queues)
            pending = self._pending(end, plan, kept)
            note = read_back_note(plan.knob, plan.asked, kept, pending)
        except (OSError, LookupError) as error:
            note = f"written, but not read back: {words(error)}"
        self._step("after read back")
        complaint = self.journal.outcome(ids, "done", kept)
        self._step("after outcome")
        self._foreign.ours(end, plan.knob, plan.queues, kept)
        note = "; ".join(filter(None, (note, complaint))) or None
        return Change(plan, old, kept, self._clock(), ids, pending=pending, note=note)

    @staticmethod
    def _pending(end: Access, plan: Plan, kept: tuple[Value, ...]) -> bool:
        """DQL looks at the bounds only when something completes (dql_completed, lib/dynamic_queue_limits.c)."""
        if plan.knob.id not in LIMITS:
            return False
        limits = [end.limit(queue) for queue in plan.queues]
        if plan.knob.id == "limit_min":
            return any(limit < value for limit, value in zip(limits, kept, strict=True))
        return any(limit > value for limit, value in zip(limits, kept, strict=True))

    def _refusal(self, plan: Plan, old: tuple[Reading, ...], error: Exception) -> Change:
        number = error.errno if isinstance(error, OSError) else None
        return Change(plan, old, (), self._clock(), errno=number, text=words(error))

    # taking back

    def undo(self, change: Change | None = None, force: bool = False) -> Change | None:
        """Take back a change (default: the last one); None when there is none.

        What somebody else has set since is left alone, and said, unless ``force``.
        """
        with self._lock:
            if change is None:
                change = self.changes[-1] if self.changes else None
            if change is None or change not in self.changes:
                return None
            return self._undo(change, force)

    def undo_all(self, force: bool = False) -> list[Change]:
        """Take back everything of this session, the latest first."""
        with self._lock:
            return [self._undo(change, force) for change in reversed(self.changes[:])]

    def _undo(self, change: Change, force: bool) -> Change:
        end = self.peer if change.plan.knob.peer else self.own
        knob, queues = change.plan.knob, change.plan.queues
        plan = self._plan_back(end, change)
        try:
            end.confirm()
            now = tuple(end.read(knob, queue) for queue in queues)
        except (OSError, LookupError) as error:
            if isinstance(error, OSError) and error.errno == errno.ENODEV:
                self._forget(change, "gone")
            return dataclasses.replace(self._refusal(plan, (), error), undo=True)
        values = tuple(reading.value for reading in now)
        if change.kept and values != change.kept and not force:
            text = f"it has been set to {span(knob, values)} since"
            return Change(plan, now, (), self._clock(), text=text, undo=True)
        entries = self._entries(end, plan, now, undoes=change.ids)
        with contextlib.suppress(JournalError):  # taking back must work with a full disk: the way back is known here
            self.journal.intend(entries)
        self._step("after undo intent")
        return self._restore(end, plan, change, now, tuple(entry.id for entry in entries))

    def _restore(self, end: Access, plan: Plan, change: Change, now: tuple[Reading, ...], ids: tuple[str, ...]) -> Change:
        knob = plan.knob
        try:
            for queue, old in zip(plan.queues, change.old, strict=True):
                end.restore(knob, queue, old)
                self._step("after undo write")
        except (OSError, ValueError) as error:
            refusal = dataclasses.replace(self._refusal(plan, now, error), undo=True)
            self.journal.outcome(ids, "refused", (), refusal.errno, refusal.text)
            return refusal
        back = self._read_back(end, plan, now, ids)
        wanted = tuple(reading.value for reading in change.old)
        missed = back.kept and not all(map(lambda a, b: satisfied(knob, a, b), wanted, back.kept))
        note = f"it was {span(knob, wanted)}, kernel keeps {span(knob, back.kept)}" if missed else None
        if back.pending:
            note = "; ".join(filter(None, (note, "pending until the next completion")))
        self._forget(change, "undone")
        return dataclasses.replace(back, undo=True, note=note)

    def _plan_back(self, end: Access, change: Change) -> Plan:
        old = change.old[0].value
        if change.plan.knob.source is Source.QDISC and change.old[0].raw["handle"] == 0:
            command = shell.put_back_qdisc(end.last_name, end.ns)
        else:
            try:
                command = self._command(end, change.plan.knob, old, single(change.plan.queues))
            except OSError:
                command = ""
        return dataclasses.replace(change.plan, old=change.kept, asked=old, command=command, warnings=())

    def _forget(self, change: Change, how: str) -> None:
        if change in self.changes:
            self.changes.remove(change)
        self.journal.settle(change.ids + change.absorbed, how)

    # trials, and leaving

    def keep(self, change: Change) -> Change:
        """A trial that shall stay. Returns the change as it is from now on."""
        with self._lock:
            kept = dataclasses.replace(change, trial_until=None)
            self.changes = [kept if one is change or one == change else one for one in self.changes]
            return kept

    def tick(self, now: float | None = None) -> list[Change]:
        """Take back the trials whose time has come; call it a few times a second. Returns what was taken back."""
        now = self._clock() if now is None else now
        with self._lock:
            due = [change for change in reversed(self.changes) if change.trial_until is not None and change.trial_until <= now]
            back = []
            for change in due:
                self.keep(change)  # tried once: what cannot be taken back is an ordinary change from now on
                back.append(self._undo(dataclasses.replace(change, trial_until=None), force=False))
            return back

    def leave(self, policy: str | None = None) -> list[Change]:
        """The end of a session. Trials are taken back in any case. ``policy`` "revert": everything; "keep": the rest
        stays on purpose; None: it stays, and the next run on the device offers to restore it. Safe to call twice.
        """
        with self._lock:
            chosen = [c for c in reversed(self.changes) if policy == "revert" or c.trial_until is not None]
            back = [self._undo(change, force=False) for change in chosen]
            if policy == "keep":
                self.journal.settle([id for change in self.changes for id in change.ids + change.absorbed], "kept")
            self.changes = []
            return back

    # others

    def poll_foreign(self, sample: Sample | None = None) -> list[Event]:
        """Settings that somebody else changed since the last call; call it about once a second (0.1 ms, one queue).
        ``sample``: the device's newest, where there is one (see Foreign.poll).

        Our sockets keep a namespace alive: once nobody else has it they are closed, and this raises OSError(ENODEV).
        """
        with self._lock:
            if netns.relocate(self.ns) is None:
                self.close()
                raise OSError(errno.ENODEV, "the network namespace is gone")
            return self._foreign.poll(sample)

    def left_behind(self) -> list[journals.Leftover]:
        """What dead runs of bqltop left changed on this device or its peer."""
        return [left for end in self._ends() for left in self.journal.left_behind(end.identity)]

    def others(self) -> list[Entry]:
        """Changes in force on this device or its peer by other runs of bqltop that are alive."""
        return [entry for end in self._ends() for entry in self.journal.others(end.identity)]


@contextlib.contextmanager
def guarded(tuner: Tuner, policy: Callable[[], str | None]) -> Iterator[Tuner]:
    """Whatever ends the block or the process in an orderly way, the changes follow the policy: an exception, the
    interpreter's exit, SIGTERM and SIGHUP (a closed terminal). ``policy()`` is asked then. After kill -9 the journal
    is what remains.
    """
    from bqltop.tuning.leaving import on_exit

    with on_exit(lambda: tuner.leave(policy())):
        yield tuner
