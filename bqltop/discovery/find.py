"""From what was typed to a namespace, and, where a device is not in it, to a hint where it is."""

from __future__ import annotations

import shlex

from bqltop.discovery import containers
from bqltop.discovery.containers import ContainerError
from bqltop.kernel import netns
from bqltop.kernel.netns import NetnsError
from bqltop.kernel.rtnl import Rtnl
from bqltop.model import Namespace

__all__ = ["ContainerError", "NetnsError", "again", "hint", "namespace_for", "where_is"]


def namespace_for(name_or_path: str | None = None, pid: int | None = None, container: str | None = None) -> Namespace:
    """The namespace of --netns NAME|PATH, --pid PID or --container NAME_OR_ID; ours where none is given.

    Raises NetnsError or ContainerError, one sentence each; nothing is ever created.
    """
    if sum(given is not None for given in (name_or_path, pid, container)) > 1:
        raise NetnsError("only one of --netns, --pid and --container can say where the device is")
    if name_or_path is not None:
        return netns.resolve(name_or_path)
    if pid is not None:
        return netns.of_pid(pid)
    if container is not None:
        found = containers.find(container)
        return _called(netns.of_pid(found.pid), found.label)
    return netns.current()


def again(name_or_path: str | None = None, container: str | None = None) -> Namespace | None:
    """The namespace of the same words after the first one has gone: a container that was started again, a name that was
    given to a new namespace. None as long as there is none. (A process does not come back.)"""
    try:
        if container is not None:
            found = containers.find(container, commands=False)
            return _called(netns.of_pid(found.pid), found.label)
        return netns.resolve(name_or_path) if name_or_path is not None else None
    except (NetnsError, ContainerError):
        return None


def _called(namespace: Namespace, label: str) -> Namespace:
    """A container's namespace by the container's name, unless it is ours (host networking)."""
    return namespace if namespace.name is None else Namespace(namespace.path, namespace.inode, label)


def where_is(device: str) -> list[Namespace]:
    """Every visible namespace that has a device of this name."""
    found = []
    for visible in netns.all_visible():
        try:
            with Rtnl(visible.namespace) as rtnl:
                if rtnl.link(device) is not None:
                    found.append(visible.namespace)
        except (NetnsError, OSError):
            continue
    return found


def hint(device: str) -> str | None:
    """What to type for a device that is elsewhere; None where nobody has it."""
    places = where_is(device)
    if not places:
        return None
    return "it is in " + ", ".join(_option(device, place) for place in places[:3]) + (" ..." if len(places) > 3 else "")


def _option(device: str, place: Namespace) -> str:
    quoted = shlex.quote(device)
    if place.name is None:
        return "the namespace bqltop runs in"
    if place.path.startswith("/proc/"):
        return f"process {place.path.split('/')[2]}'s namespace (bqltop {quoted} --pid {place.path.split('/')[2]})"
    return f"namespace {place.name} (bqltop {quoted} --netns {shlex.quote(place.name)})"
