"""What was set and how to take it back: a file of JSON lines that survives kill -9 and power loss.

Every change is on disk (fsync) as an *intent* before it happens, and gets its *outcome* afterwards. A change whose
writer is dead and which was neither taken back nor kept on purpose is *left behind*: the next run offers to restore it.
Record by record the format is in docs/tuning.md.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import itertools
import json
import os
import pwd
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bqltop.fault import Fault
from bqltop.files import must_be_ordinary
from bqltop.model import Namespace
from bqltop.tuning.access import Identity, Reading, boot_id
from bqltop.tuning.knobs import Value

VERSION = 1
FILE, LOCK = "journal.jsonl", "journal.lock"
ROTATE_BYTES = 1 << 20
"""Above this size the journal is rewritten: what is still outstanding, and the newest records."""
RECORDS_KEPT = 500
LOCK_S = 3.0
"""How long to wait for another process that writes."""
OUTSTANDING = ("intended", "done")


class JournalError(Fault):
    """The journal cannot be written; the text is one plain line."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One change of one queue's (or the device's) knob, as far as the journal knows.

    ``state``: intended (the outcome was never written), done, refused, undone, kept (on purpose), gone (the device
    is). ``undoes`` is the id of the change this one takes back. ``kept`` is None while it is not known. ``batch``
    binds the queues of one change together. ``via``: the device that was tuned, which for a ``peer-`` knob is not
    ``device`` but its other end.
    """

    id: str
    at: str
    user: str
    pid: int
    started: int
    device: str
    ns: Namespace
    identity: Identity
    knob: str
    queue: int | None
    old: Reading
    asked: Value
    batch: str
    via: str
    undoes: str | None = None
    state: str = "intended"
    kept: Value | None = None
    errno: int | None = None
    text: str | None = None

    @property
    def key(self) -> tuple:
        """What was changed: entries with one key are about one value of one device."""
        return (self.identity, self.knob, self.queue)

    @property
    def outstanding(self) -> bool:
        return self.state in OUTSTANDING and self.undoes is None


@dataclass(frozen=True, slots=True)
class Leftover:
    """A value that dead runs left changed: ``first.old`` is the way back, ``last`` says what should stand there."""

    entries: tuple[Entry, ...]

    @property
    def first(self) -> Entry:
        return self.entries[0]

    @property
    def last(self) -> Entry:
        return self.entries[-1]


def default_folder() -> str:
    """$BQLTOP_STATE_DIR, or what systemd gives a unit with StateDirectory=, or /var/lib/bqltop (file-hierarchy(7))."""
    environment = os.environ
    systemd = environment.get("STATE_DIRECTORY", "").split(":")[0]
    return environment.get("BQLTOP_STATE_DIR") or systemd or "/var/lib/bqltop"


class NoJournal:
    """The journal of somebody who wants none: the same methods, nothing on disk, nothing ever left behind."""

    path = None

    def intend(self, entries: Iterable[Entry]) -> None:
        """Nothing to write."""

    def outcome(self, ids: Iterable[str], result: str, kept=(), errno=None, text=None) -> str | None:
        return None

    def settle(self, ids: Iterable[str], how: str) -> str | None:
        return None

    def entries(self) -> list[Entry]:
        return []

    def left_behind(self, identity: Identity | None = None, kept: bool = False) -> list[Leftover]:
        return []

    def others(self, identity: Identity) -> list[Entry]:
        return []


class Journal:
    """The journal in a folder. Several processes may use it at once: every access holds the lock for its moment."""

    def __init__(self, folder: str | None = None):
        self.folder = folder or default_folder()
        self.path = os.path.join(self.folder, FILE)

    # writing

    def intend(self, entries: Iterable[Entry]) -> None:
        """Put what is about to happen on disk. Raises JournalError: then it must not happen."""
        self._append([_intent(entry) for entry in entries])

    def outcome(self, ids: Iterable[str], result: str, kept: Iterable[Value] = (), errno: int | None = None,
                text: str | None = None) -> str | None:  # fmt: skip
        """What came of it, ``result`` done or refused. The change has happened: a journal that fails now is no reason
        to fail, so its complaint is returned, not raised."""
        values = [*kept]
        return self._try(
            [{"event": "outcome", "id": id, "result": result, "kept": values[i] if values else None, "errno": errno,
              "text": text} for i, id in enumerate(ids)]
        )  # fmt: skip

    def settle(self, ids: Iterable[str], how: str) -> str | None:
        """These changes need no restoring any more: undone, kept (on purpose) or gone. Returns a complaint or None."""
        ids = [*ids]
        return self._try([{"event": "settled", "ids": ids, "how": how}]) if ids else None

    def _try(self, records: list[dict]) -> str | None:
        try:
            self._append(records)
        except JournalError as error:
            return str(error)
        return None

    def _append(self, records: list[dict]) -> None:
        stamp = {"v": VERSION, "at": datetime.now(UTC).isoformat(timespec="milliseconds")}
        lines = "".join(json.dumps(stamp | record) + "\n" for record in records)
        try:
            os.makedirs(self.folder, mode=0o755, exist_ok=True)
            with self._lock():
                if self._size() > ROTATE_BYTES:
                    self._rotate()
                self._write(lines.encode())
        except OSError as error:
            raise JournalError(f"the journal {self.path} cannot be written: {error.strerror}") from None

    def _write(self, data: bytes) -> None:
        must_be_ordinary(Path(self.path))
        new = not os.path.exists(self.path)
        fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        try:
            size = os.fstat(fd).st_size
            if size and os.pread(fd, 1, size - 1) != b"\n":
                data = b"\n" + data  # the line before was torn by a crash: end it, so that ours can be read
            try:
                if os.write(fd, data) != len(data):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                os.fsync(fd)
            except OSError:
                os.ftruncate(fd, size)
                raise
        finally:
            os.close(fd)
        if new:
            self._sync_folder()

    def _rotate(self) -> None:
        records = self._records()
        outstanding = {entry.id for entry in fold(records) if entry.outstanding}
        first_kept = len(records) - RECORDS_KEPT
        kept = [r for i, r in enumerate(records) if i >= first_kept or outstanding & {r.get("id"), *r.get("ids", ())}]
        temporary = f"{self.path}.new"
        with open(temporary, "w") as file:
            file.writelines(json.dumps(record) + "\n" for record in kept)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, self.path)
        self._sync_folder()

    def _sync_folder(self) -> None:
        fd = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def _size(self) -> int:
        try:
            return os.stat(self.path).st_size
        except FileNotFoundError:
            return 0

    @contextlib.contextmanager
    def _lock(self) -> Iterator[None]:
        """A file of its own: the journal itself is replaced when it is rewritten. Raises OSError(EAGAIN) when another
        process (stopped in the middle of a write?) does not let go."""
        fd = os.open(os.path.join(self.folder, LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        deadline = time.monotonic() + LOCK_S
        try:
            while True:
                try:
                    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() > deadline:
                        raise BlockingIOError(errno.EAGAIN, "another process holds its lock") from None
                    time.sleep(0.005)
            yield
        finally:
            os.close(fd)

    # reading

    def entries(self) -> list[Entry]:
        """Every change, oldest first. Raises OSError; an absent journal is an empty one."""
        return fold(self._records())

    def size(self) -> int:
        """Bytes of the file; an absent journal has none."""
        try:
            return os.stat(self.path).st_size
        except FileNotFoundError:
            return 0

    def left_behind(self, identity: Identity | None = None, kept: bool = False) -> list[Leftover]:
        """Values that runs which are no more left changed, in the order to restore them (the latest first).

        Only of this uptime: after a restart of the machine the kernel has forgotten them. ``identity``: of this
        device only. ``kept``: also those kept on purpose. An unreadable journal has nothing to tell.
        """
        try:
            entries = self.entries()
        except OSError:
            return []
        boot, groups = boot_id(), {}
        for entry in entries:
            wanted = entry.outstanding or (kept and entry.state == "kept")
            mine = identity in (None, entry.identity) and entry.identity.boot == boot
            if wanted and mine and not alive(entry.pid, entry.started):
                groups.setdefault(entry.key, []).append(entry)
        order = {entry.id: i for i, entry in enumerate(entries)}
        return sorted((Leftover(tuple(group)) for group in groups.values()), key=lambda left: -order[left.last.id])

    def others(self, identity: Identity) -> list[Entry]:
        """Changes on this device by other runs of bqltop that are still alive."""
        try:
            entries = self.entries()
        except OSError:
            return []
        return [e for e in entries if e.outstanding and e.identity == identity and e.pid != os.getpid()
                and alive(e.pid, e.started)]  # fmt: skip

    def _records(self) -> list[dict]:
        try:
            must_be_ordinary(Path(self.path))  # whoever opens a FIFO waits for ever
            with open(self.path, errors="replace") as file:
                return [record for record in map(_record, file) if record]
        except FileNotFoundError:
            return []


def fold(records: Iterable[dict]) -> list[Entry]:
    """Records in order -> changes with their state. Pure; records of a later version or damaged ones are skipped."""
    entries: dict[str, Entry] = {}
    for record in records:
        with contextlib.suppress(KeyError, TypeError, ValueError):
            _take_in(entries, record)
    return list(entries.values())


def _take_in(entries: dict[str, Entry], record: dict) -> None:
    if record["event"] == "intent":
        entry = _entry(record)
        entries[entry.id] = entry
    elif record["event"] == "outcome":
        entry = entries[record["id"]]
        kept = record["kept"]
        entries[entry.id] = replace(entry, state=record["result"], kept=kept, errno=record["errno"], text=record["text"])
        if entry.undoes in entries and record["result"] == "done":
            entries[entry.undoes] = replace(entries[entry.undoes], state="undone")
    elif record["event"] == "settled":
        for id in record["ids"]:
            if id in entries:
                entries[id] = replace(entries[id], state=record["how"])


def _record(line: str) -> dict | None:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None  # torn by a crash, or not ours
    return record if isinstance(record, dict) and record.get("v") == VERSION else None


def _intent(entry: Entry) -> dict[str, Any]:
    return {
        "event": "intent", "id": entry.id, "batch": entry.batch, "user": entry.user, "pid": entry.pid,
        "started": entry.started, "device": entry.device, "via": entry.via, "netns": asdict(entry.ns),
        "identity": asdict(entry.identity), "knob": entry.knob, "queue": entry.queue, "old": entry.old.value,
        "raw": entry.old.raw, "asked": entry.asked, "undoes": entry.undoes,
    }  # fmt: skip


def _entry(record: dict[str, Any]) -> Entry:
    plain = {name: record[name] for name in ("id", "at", "user", "pid", "started", "device", "knob", "queue", "asked",
                                             "batch", "via", "undoes")}  # fmt: skip
    return Entry(ns=Namespace(**record["netns"]), identity=Identity(**record["identity"]),
                 old=Reading(record["old"], record["raw"]), **plain)  # fmt: skip


# who writes

_numbers = itertools.count(1)


def new_id() -> str:
    """An id no other change has: process, its start, and a number of its own."""
    return f"{os.getpid()}-{start_time(os.getpid())}-{next(_numbers)}"


def writer() -> dict[str, Any]:
    """The fields of an Entry that say who writes it."""
    return {"user": user(), "pid": os.getpid(), "started": start_time(os.getpid())}


def start_time(pid: int) -> int | None:
    """When a process began, in clock ticks since boot (proc_pid_stat(5), field 22); None if there is none."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return int(file.read().rpartition(b")")[2].split()[19])
    except (OSError, IndexError, ValueError):
        return None


def alive(pid: int, started: int) -> bool:
    """Whether the process that was ``pid`` at that start is still there: numbers are used again, starts are not."""
    return start_time(pid) == started


def user() -> str:
    """Who is at the keyboard: sudo's caller, else the account of the user id."""
    sudo = os.environ.get("SUDO_USER")
    if sudo:
        return sudo
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())
