"""What a run of the tests may have left behind: namespaces, processes, devices, eBPF programs of ours."""

from __future__ import annotations

import os
from pathlib import Path

from bqltop.lab.scope import NETNS_DIR, PREFIX_VARIABLE

PREFIX = f"bqt{os.getpid()}"
"""Every process and namespace that comes from this run carries this mark, also through `bqltop demo` in a child process."""


def namespaces(prefix: str = PREFIX) -> set[str]:
    """Named namespaces whose name begins with `prefix`."""
    folder = Path(NETNS_DIR)
    return {path.name for path in folder.iterdir() if path.name.startswith(prefix)} if folder.exists() else set()


def marked_processes(mark: str = PREFIX) -> dict[int, str]:
    """Processes, but not this one, whose environment has our prefix: pid -> command line."""
    found = {}
    wanted = f"{PREFIX_VARIABLE}={mark}".encode()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if int(folder.name) != os.getpid() and wanted in (folder / "environ").read_bytes().split(b"\0"):
                command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
                found[int(folder.name)] = command
        except OSError:
            continue  # it ended while we looked, or is not ours to read
    return found


def own_programs() -> set[str]:
    """eBPF programs and links that this process holds: target of the descriptor and id. They live as long as it does."""
    found = set()
    for path in Path("/proc/self/fd").iterdir():
        try:
            target = os.readlink(path)
            if target in ("anon_inode:bpf-prog", "anon_inode:bpf_link", "anon_inode:bpf-raw-tracepoint"):
                fields = dict(line.split(":\t", 1) for line in Path("/proc/self/fdinfo", path.name).read_text().splitlines())
                found.add(f"{target} id {fields.get('prog_id', '?')}")
        except (OSError, ValueError):
            continue
    return found


def leftovers() -> dict[str, object]:
    """Everything of this run that still exists outside of this process, or as an eBPF program in it."""
    ours = tuple(f"{kind}{os.getpid()}x" for kind in ("ifb", "tun", "dummy"))
    devices = {path.name for path in Path("/sys/class/net").iterdir() if path.name.startswith(ours)}
    all_kinds = {
        "namespaces": namespaces(),
        "processes": marked_processes(),
        "devices": devices,
        "eBPF programs": own_programs(),
    }
    return {kind: found for kind, found in all_kinds.items() if found}
