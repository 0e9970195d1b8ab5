"""Network namespaces: naming them, entering them for a moment, and their sysfs.

The main thread never changes its namespace: whatever must happen inside one happens in a throw-away thread that
calls setns(2) for itself alone. Nothing here creates a namespace or forks.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import socket
import tempfile
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from bqltop.fault import Fault
from bqltop.model import Namespace

RUN_NETNS = "/run/netns"
"""Where ip-netns(8) keeps its names."""

OTHER_FOLDERS = ("/run/docker/netns",)
"""Folders of namespaces that other programs bind-mount, by no name a person would type."""

CLONE_NEWNET = 0x40000000
CLONE_NEWNS = 0x00020000
NS_GET_NSTYPE = 0xB703
"""ioctl_ns(2)"""

MS_REC, MS_SLAVE, MNT_DETACH = 1 << 14, 1 << 19, 2
FSOPEN, FSCONFIG, FSMOUNT = 430, 431, 432
"""System call numbers, the same on every architecture but alpha."""
FSCONFIG_CMD_CREATE = 6

Result = TypeVar("Result")
_libc = ctypes.CDLL(None, use_errno=True)


class NetnsError(Fault):
    """A namespace cannot be found or entered; the text is one plain sentence."""


@dataclass(frozen=True, slots=True)
class Visible:
    """A namespace that can be seen from here, and the oldest process in it (None: nobody lives there)."""

    namespace: Namespace
    pid: int | None = None
    process: str | None = None


def current() -> Namespace:
    """The namespace bqltop runs in."""
    path = f"/proc/{os.getpid()}/ns/net"
    return Namespace(path, os.stat(path).st_ino)


def names() -> list[str]:
    """The names ip-netns(8) knows."""
    try:
        return sorted(os.listdir(RUN_NETNS))
    except OSError:
        return []


def resolve(name_or_path: str) -> Namespace:
    """The namespace of a name under /run/netns, or of a path (anything with a slash in it).

    Raises NetnsError naming the namespaces there are.
    """
    if "/" in name_or_path:
        name, path = name_or_path, name_or_path
    else:
        name, path = name_or_path, f"{RUN_NETNS}/{name_or_path}"
    inode = _inode_of(path, name)
    return _named(path, inode, name)


def of_pid(pid: int) -> Namespace:
    """The namespace a process lives in. Raises NetnsError."""
    path = f"/proc/{pid}/ns/net"
    try:
        inode = os.stat(path).st_ino
    except PermissionError:
        raise NetnsError(f"the network namespace of process {pid} may not be looked at (it takes root)") from None
    except OSError:
        raise NetnsError(f"there is no process {pid}") from None
    name = next((name for name in names() if _inode_or_none(f"{RUN_NETNS}/{name}") == inode), None)
    return _named(f"{RUN_NETNS}/{name}" if name else path, inode, name or f"pid:{pid}")


def _named(path: str, inode: int, name: str) -> Namespace:
    own = current()
    return own if inode == own.inode else Namespace(path, inode, name)


def _inode_of(path: str, name: str) -> int:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except PermissionError:
        raise NetnsError(f'network namespace "{name}" may not be opened (it takes root)') from None
    except (OSError, ValueError):
        raise NetnsError(f'there is no network namespace "{name}"; {_there_are()}') from None
    try:
        if fcntl.ioctl(fd, NS_GET_NSTYPE) == CLONE_NEWNET:
            return os.fstat(fd).st_ino
    except OSError:
        pass
    finally:
        os.close(fd)
    raise NetnsError(f'"{path}" is not a network namespace; {_there_are()}')


def _there_are() -> str:
    known = names()
    if not known:
        return "no namespace has a name here"
    shown = ", ".join(known[:20])
    return f"there are: {shown}" + (f" and {len(known) - 20} more" if len(known) > 20 else "")


def _inode_or_none(path: str) -> int | None:
    try:
        return os.stat(path).st_ino
    except OSError:
        return None


def exists(namespace: Namespace) -> bool:
    """Whether the name or path still leads to the same namespace.

    Our own open sockets keep a namespace alive after everybody else has left, and its inode number cannot be used
    again as long as they do: asking the path is the only way to notice.
    """
    return _inode_or_none(namespace.path) == namespace.inode


def relocate(namespace: Namespace) -> Namespace | None:
    """The same namespace by a path that works: itself, or another one when its own has gone; None if it is gone."""
    if exists(namespace):
        return namespace
    found = next((v.namespace for v in all_visible() if v.namespace.inode == namespace.inode), None)
    return Namespace(found.path, found.inode, namespace.name) if found else None


def all_visible() -> list[Visible]:
    """Every namespace that can be seen: ours first, the named ones, then those that only processes live in."""
    own = current()
    seen = {own.inode: own}
    for folder in (RUN_NETNS, *OTHER_FOLDERS):
        for name, inode in _nsfs_entries(folder):
            label = name if folder == RUN_NETNS else f"{folder}/{name}"
            seen.setdefault(inode, Namespace(f"{folder}/{name}", inode, label))
    owners: dict[int, int] = {}
    for pid in pids():
        inode = _inode_or_none(f"/proc/{pid}/ns/net")
        if inode is not None:
            owners.setdefault(inode, pid)
            seen.setdefault(inode, Namespace(f"/proc/{pid}/ns/net", inode, f"pid:{pid}"))
    return [Visible(ns, owners.get(inode), _comm(owners.get(inode))) for inode, ns in seen.items()]


def _nsfs_entries(folder: str) -> list[tuple[str, int]]:
    """Names and inodes of the namespaces bind-mounted in a folder (a name may be a leftover plain file)."""
    try:
        entries = sorted(os.listdir(folder))
        beside = os.stat(folder).st_dev
    except OSError:
        return []
    found = []
    for name in entries:
        try:
            status = os.stat(f"{folder}/{name}")
        except OSError:
            continue
        if status.st_dev != beside:
            found.append((name, status.st_ino))
    return found


def pids() -> list[int]:
    """Every process that can be seen, by number."""
    return sorted(int(entry) for entry in os.listdir("/proc") if entry.isdecimal())


def _comm(pid: int | None) -> str | None:
    if pid is None:
        return None
    try:
        with open(f"/proc/{pid}/comm", "rb") as file:
            return os.fsdecode(file.read().rstrip(b"\n"))
    except OSError:
        return None


def run_in(namespace: Namespace, function: Callable[[], Result]) -> Result:
    """The result of ``function`` run inside the namespace, in a thread made for it (0.1 ms). What it raises is
    raised here. Our own namespace takes no thread and no privilege."""
    if namespace.inode == current().inode:
        return function()

    def inside() -> Result:
        enter(namespace)
        return function()

    return _in_thread(inside)


def _in_thread(function: Callable[[], Result]) -> Result:
    outcome: list[Result] = []
    failure: list[BaseException] = []

    def body() -> None:
        try:
            outcome.append(function())
        except BaseException as error:  # handed on to the caller's thread
            failure.append(error)

    thread = threading.Thread(target=body, name="bqltop-netns", daemon=True)
    thread.start()
    thread.join()
    if failure:
        raise failure[0]
    return outcome[0]


def enter(namespace: Namespace) -> None:
    """Move the calling thread, which must be one that ends soon, into the namespace. Raises NetnsError."""
    if threading.current_thread() is threading.main_thread():
        raise RuntimeError("the main thread must stay in its namespace")
    try:
        fd = os.open(namespace.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        raise NetnsError(f"network namespace {_called(namespace)} is gone") from None
    try:
        if os.fstat(fd).st_ino != namespace.inode:
            raise NetnsError(f"network namespace {_called(namespace)} is gone, another one has its name")
        if _libc.setns(fd, CLONE_NEWNET):
            reason = os.strerror(ctypes.get_errno())
            raise NetnsError(f"network namespace {_called(namespace)} cannot be entered: {reason} (it takes root)")
    finally:
        os.close(fd)


def _called(namespace: Namespace) -> str:
    return f'"{namespace.name or namespace.path}"'


def socket_in(namespace: Namespace, family: int, kind: int, protocol: int = 0) -> socket.socket:
    """A socket that belongs to the namespace; any thread may use it afterwards. Raises NetnsError, OSError."""
    return run_in(namespace, lambda: socket.socket(family, kind | socket.SOCK_CLOEXEC, protocol))


def sysfs_dir(namespace: Namespace) -> int:
    """A directory descriptor of a sysfs that shows this namespace's ``class/net``; the caller closes it.

    /sys itself shows the namespace it was mounted from, which need not be ours (nsenter -n leaves it alone), so it
    is only the last resort, for our own namespace without privilege. Raises NetnsError.
    """
    ours = namespace.inode == current().inode

    def in_thread(attempt: Callable[[], int]) -> int:
        if not ours:
            enter(namespace)
        return attempt()

    for attempt in (_sysfs_by_fsmount, _sysfs_by_mount):
        try:
            return _in_thread(lambda attempt=attempt: in_thread(attempt))
        except OSError:
            continue
    if ours:
        return os.open("/sys", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    raise NetnsError(f"the sysfs of network namespace {_called(namespace)} cannot be reached (it takes root)")


def _sysfs_by_fsmount() -> int:
    """fsopen(2) and friends: a mount that is nowhere in the tree (Linux 5.2)."""
    context = _call("fsopen", _libc.syscall(FSOPEN, b"sysfs", 1))
    try:
        _call("fsconfig", _libc.syscall(FSCONFIG, context, FSCONFIG_CMD_CREATE, None, None, 0))
        return _call("fsmount", _libc.syscall(FSMOUNT, context, 1, 0))
    finally:
        os.close(context)


def _sysfs_by_mount() -> int:
    """The same for older kernels: mount it in a mount namespace of this thread alone, and keep the directory."""
    _call("unshare", _libc.unshare(CLONE_NEWNS))
    _call("mount", _libc.mount(b"none", b"/", None, MS_REC | MS_SLAVE, None))
    with tempfile.TemporaryDirectory(prefix="bqltop-sysfs-") as folder:
        where = os.fsencode(folder)
        _call("mount", _libc.mount(b"sysfs", where, b"sysfs", 0, None))
        try:
            return os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        finally:
            _libc.umount2(where, MNT_DETACH)


def _call(name: str, result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")
    return result
