"""Containers: their processes and names, from the runtimes' own state files, and from their commands as a last resort.

Which processes are in which container is read from their control groups, which every runtime names after the container's id;
names come from the files each runtime keeps. ``root`` is where the file system begins (tests have one of their own).
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bqltop.fault import Fault

ROOT = Path("/")
COMMAND_TIMEOUT_S = 5.0

_CGROUP = re.compile(
    r"(?:/docker/|docker-|libpod-(?:payload-)?|/libpod_parent/|cri-containerd-|crio-|nerdctl-|/)([0-9a-f]{64})(?:\.scope)?(?:/|$)"
)
_MACHINE = re.compile(r"/(?:machine\.slice/)?(?:systemd-nspawn@|lxc\.payload[./]|lxc/)([^/]+?)(?:\.service)?(?:/|$)")
_RUNTIMES = (
    ("libpod", "podman"),
    ("crio", "cri-o"),
    ("containerd", "containerd"),
    ("docker", "docker"),
    ("kubepods", "containerd"),
)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_./-]*")
_COMMANDS = {
    "docker": ("docker", "inspect", "--type", "container", "--format", "{{.State.Pid}} {{.Id}} {{.Name}}"),
    "podman": ("podman", "inspect", "--type", "container", "--format", "{{.State.Pid}} {{.Id}} {{.Name}}"),
    "crictl": ("crictl", "inspect", "--output", "go-template",
               "--template", "{{.info.pid}} {{.status.id}} {{.status.metadata.name}}"),
    "nerdctl": ("nerdctl", "inspect", "--format", "{{.State.Pid}} {{.ID}} {{.Name}}"),
    "lxc-info": ("lxc-info", "--no-humanize", "--pid", "--name"),
}  # fmt: skip


class ContainerError(Fault):
    """A container cannot be found; the text is one plain sentence."""


@dataclass(frozen=True, slots=True)
class Container:
    """A running container: ``pid`` is a process in it, ``names`` what it may be called."""

    id: str
    runtime: str
    pid: int
    names: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        return self.names[0] if self.names else self.id[:12]


def parse_cgroup(text: str) -> tuple[str, str] | None:
    """(runtime, container's id) of the text of /proc/PID/cgroup; None for a process in no container."""
    for line in text.splitlines():
        path = line.split(":", 2)[-1]
        ids = _CGROUP.findall(path)
        if ids:
            return next((name for part, name in _RUNTIMES if part in path), "container"), ids[-1]
        machine = _MACHINE.search(path)
        if machine:
            return ("nspawn" if "nspawn" in path else "lxc"), machine.group(1)
    return None


def container_of(pid: int, root: Path = ROOT) -> tuple[str, str] | None:
    """(runtime, container's id) a process belongs to."""
    text = _text(root / "proc" / str(pid) / "cgroup")
    return parse_cgroup(text) if text else None


def names_by_id(root: Path = ROOT) -> dict[str, str]:
    """The first name of every container whose runtime's files can be read."""
    return {id_: names[0] for id_, names, _ in _known(root) if names}


def running(root: Path = ROOT) -> list[Container]:
    """Every running container that can be seen, oldest process first."""
    known = {id_: (names, runtime) for id_, names, runtime in _known(root)}
    found: dict[str, Container] = {}
    for pid in sorted(int(entry.name) for entry in (root / "proc").iterdir() if entry.name.isdecimal()):
        belongs = container_of(pid, root)
        if belongs and belongs[1] not in found:
            names, runtime = known.get(belongs[1], ((), None))
            if belongs[0] in ("lxc", "nspawn"):
                names = (belongs[1],)
            found[belongs[1]] = Container(belongs[1], runtime or belongs[0], pid, names)
    return list(found.values())


def find(name_or_id: str, root: Path = ROOT, commands: bool = True) -> Container:
    """The running container of a name, an id or the unambiguous beginning of an id. ``commands``: ask the runtimes'
    commands as well when no file tells. Raises ContainerError."""
    if not _NAME.fullmatch(name_or_id):
        raise ContainerError(f'"{name_or_id}" is not a name that a container can have')
    containers = running(root)
    for matches in (
        [c for c in containers if name_or_id in c.names or c.id == name_or_id],
        [c for c in containers if len(name_or_id) >= 3 and c.id.startswith(name_or_id)],
    ):
        if len(matches) == 1:
            return matches[0]
        if matches:
            which = ", ".join(f"{c.label} ({c.runtime} {c.id[:12]})" for c in matches)
            raise ContainerError(f'"{name_or_id}" is more than one container: {which}')
    stopped = next((names for id_, names, _ in _known(root) if name_or_id in names or id_ == name_or_id), None)
    if stopped is not None:
        raise ContainerError(f'container "{name_or_id}" is not running')
    by_command = _ask_runtimes(name_or_id) if commands and root == ROOT else None
    if by_command:
        return by_command
    raise ContainerError(f'there is no running container "{name_or_id}"; {_there_are(containers)}')


def _there_are(containers: list[Container]) -> str:
    if not containers:
        return "no container is running here, as far as can be seen"
    shown = ", ".join(sorted(container.label for container in containers)[:20])
    return f"there are: {shown}" + (f" and {len(containers) - 20} more" if len(containers) > 20 else "")


def _ask_runtimes(name: str) -> Container | None:
    """What the runtimes' commands know: for names that are in no file we may read."""
    for runtime, command in _COMMANDS.items():
        try:
            done = subprocess.run(
                (*command, name), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=COMMAND_TIMEOUT_S, check=False
            )
        except (OSError, subprocess.SubprocessError):
            continue
        words = done.stdout.split() if done.returncode == 0 else []
        if words and words[0].isdecimal() and int(words[0]) > 0:
            names = tuple(word.lstrip("/") for word in words[2:3]) or (name,)
            return Container(words[1] if len(words) > 1 else name, runtime, int(words[0]), names)
    return None


# what the runtimes keep


def _known(root: Path) -> Iterator[tuple[str, tuple[str, ...], str]]:
    """(id, names, runtime) of every container that some runtime has a readable file about, running or not."""
    yield from _docker(root)
    yield from _podman(root)
    yield from _containerd(root)


def _docker(root: Path) -> Iterator[tuple[str, tuple[str, ...], str]]:
    for file in _glob(root, "var/lib/docker/containers/*/config.v2.json"):
        state = _json(file)
        if isinstance(state, dict) and state.get("Name"):
            yield file.parent.name, (str(state["Name"]).lstrip("/"),), "docker"


def _podman(root: Path) -> Iterator[tuple[str, tuple[str, ...], str]]:
    """containers/storage: podman and CRI-O, of root and of users."""
    storage = "storage/overlay-containers/containers.json"
    for pattern in (
        f"var/lib/containers/{storage}",
        f"home/*/.local/share/containers/{storage}",
        f"root/.local/share/containers/{storage}",
    ):
        for file in _glob(root, pattern):
            entries = _json(file)
            for entry in entries if isinstance(entries, list) else ():
                if isinstance(entry, dict) and entry.get("id"):
                    yield entry["id"], tuple(map(str, entry.get("names") or ())), "podman"


def _containerd(root: Path) -> Iterator[tuple[str, tuple[str, ...], str]]:
    """Tasks of containerd: of Kubernetes, nerdctl and ctr, whose annotations say what they are called. Docker's own
    tasks are in the namespace "moby" and told by _docker."""
    for file in _glob(root, "run/containerd/io.containerd.runtime.v2.task/*/*/config.json"):
        if file.parent.parent.name == "moby":
            continue
        config = _json(file)
        notes = (config.get("annotations") or {}) if isinstance(config, dict) else {}
        pod = notes.get("io.kubernetes.cri.sandbox-name")
        name = notes.get("io.kubernetes.cri.container-name") or notes.get("nerdctl/name")
        names = (f"{pod}/{name}", name) if pod and name else (name or pod,)
        yield file.parent.name, tuple(filter(None, names)), "containerd"


def _glob(root: Path, pattern: str) -> list[Path]:
    try:
        return sorted(root.glob(pattern))
    except OSError:
        return []


def _text(file: Path) -> str | None:
    try:
        return file.read_text(errors="replace")
    except OSError:
        return None


def _json(file: Path) -> object:
    text = _text(file)
    try:
        return json.loads(text) if text else None
    except (ValueError, RecursionError):
        return None
