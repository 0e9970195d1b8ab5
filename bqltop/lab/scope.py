"""Namespaces and commands of a lab, under the eyes of a guardian that removes them in any case."""

from __future__ import annotations

import itertools
import json
import os
import shlex
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from bqltop.fault import Fault
from bqltop.lab import flood, guardian

NETNS_DIR = "/run/netns"  # where iproute2 keeps named namespaces
PREFIX_VARIABLE = "BQLTOP_LAB_PREFIX"
PACKAGES = {"ip": "iproute2", "tc": "iproute2", "ethtool": "ethtool"}  # Debian's names
# Run by path and isolated: starts in 10 ms, and does not depend on what is installed where.
PYTHON = [sys.executable, "-I", "-S"]

_serial = itertools.count(1)


class LabError(Fault):
    """A lab could not be built; the text is one sentence that says what to do."""


class LabUnavailable(LabError):
    """This host cannot have the lab at all: no root, a tool or a part of the kernel is missing."""


def default_prefix() -> str:
    """What names of namespaces begin with: the environment's BQLTOP_LAB_PREFIX, or `bqltop`."""
    return os.environ.get(PREFIX_VARIABLE) or "bqltop"


def environment() -> dict[str, str]:
    """The environment for tools: English messages, and the system folders that `su` leaves out of PATH."""
    path = os.environ.get("PATH", "/usr/bin:/bin")
    return {**os.environ, "LC_ALL": "C", "PATH": f"{path}:/usr/sbin:/sbin"}


def call(argv: list[str], text: str | None = None) -> str:
    """Runs a tool and returns its standard output; `text` goes to its standard input.

    Raises LabUnavailable when the tool is missing, LabError with its own words when it fails.
    """
    try:
        done = subprocess.run(
            argv,
            input=text,
            stdin=subprocess.DEVNULL if text is None else None,
            capture_output=True,
            text=True,
            env=environment(),
            check=False,
        )
    except FileNotFoundError:
        package = PACKAGES.get(argv[0], argv[0])
        raise LabUnavailable(f"The lab needs {argv[0]}: apt install {package}.") from None
    if done.returncode:
        words = " ".join(done.stderr.split()) or f"exit status {done.returncode}"
        raise LabError(f"{shlex.join(argv)}: {words}")
    return done.stdout


def in_netns(netns: str, function: Callable[..., Any], *arguments: Any) -> Any:
    """Calls `function` in a throw-away thread that has entered the namespace `netns` (a name); returns what it returns.

    The calling thread never changes its namespace. Sockets and files made in there stay where they were made.
    """
    outcome: list[Any] = []

    def enter_and_call() -> None:
        try:
            flood.enter_netns(f"{NETNS_DIR}/{netns}")
            outcome.extend((True, function(*arguments)))
        except BaseException as error:
            outcome.extend((False, error))

    thread = threading.Thread(target=enter_and_call)
    thread.start()
    thread.join()
    if not outcome[0]:
        raise outcome[1]
    return outcome[1]


class Scope:
    """Owns namespaces and processes. `close()`, or the end of this process by any means, removes them.

    prefix: first part of the names of namespaces; the process id follows.
    """

    def __init__(self, prefix: str = "") -> None:
        if os.geteuid():
            raise LabUnavailable("The lab makes network namespaces, which only root may: run it as root (sudo).")
        self.prefix = prefix or default_prefix()
        self._name = f"{self.prefix}-{os.getpid()}"
        self._serial = next(_serial)
        self.steps: list[tuple[str, str]] = []
        self._guardian = subprocess.Popen(
            [*PYTHON, guardian.__file__, str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            cwd="/",
            env=environment(),
            start_new_session=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Removes everything and returns when it is gone. May be called twice."""
        if not self._guardian.stdin.closed:
            with suppress(BrokenPipeError):
                self._guardian.stdin.write(b"end\n")
            self._guardian.stdin.close()
        self._guardian.wait()

    def tell_guardian(self, *words: str) -> None:
        """One line of the protocol in guardian.py. Always before the thing exists: nothing may be made and then missed."""
        try:
            self._guardian.stdin.write(" ".join(words).encode() + b"\n")
        except (BrokenPipeError, ValueError):
            raise LabError("The lab's guardian process is gone, and the lab with it: build a new one.") from None

    def adopt(self, process: subprocess.Popen) -> None:
        """Has the guardian end this process in case we cannot."""
        self.tell_guardian("pid", str(process.pid), guardian.start_time(process.pid))

    def run(self, *argv: str, why: str = "", text: str | None = None, shown: str = "") -> str:
        """Runs a command, notes it (as `shown`, when the real one does not read well) for `description()`."""
        output = call(list(argv), text)
        self.steps.append((shown or shlex.join(argv), why))
        return output

    def inside(self, netns: str, *argv: str, why: str = "", text: str | None = None, shown: str = "") -> str:
        """Like `run`, inside a namespace, with that namespace's /sys."""
        return self.run("ip", "netns", "exec", netns, *argv, why=why, text=text, shown=shown)

    def description(self) -> list[str]:
        """The commands that were run, each with the reason as a shell comment."""
        return [f"{command}  # {why}" if why else command for command, why in self.steps]

    def netns(self, role: str, why: str = "") -> str:
        """Makes a namespace, with lo and without IPv6 (router solicitations would spoil exact counts); returns its name."""
        number = "" if self._serial == 1 else f"-{self._serial}"
        name = f"{self._name}{number}-{role}"
        if Path(NETNS_DIR, name).exists():
            raise LabError(f"There is a namespace {name} already: ip netns del {name}.")
        self.tell_guardian("netns", name)
        self.run("ip", "netns", "add", name, why=why)
        settings = ["net.ipv4.ip_forward=0"]  # a new namespace copies the host's: a router would answer with ICMP errors
        if Path("/proc/sys/net/ipv6").exists():
            settings += ["net.ipv6.conf.all.disable_ipv6=1", "net.ipv6.conf.default.disable_ipv6=1"]
        in_netns(name, write_sysctls, settings)
        self.steps.append((f"ip netns exec {name} sysctl -qw {' '.join(settings)}", "no packet but ours"))
        return name

    def link(self, netns: str, device: str) -> dict[str, Any]:
        """What `ip -j link show` says of a device."""
        return json.loads(call(["ip", "-n", netns, "-j", "link", "show", "dev", device]))[0]


def write_sysctls(settings: list[str]) -> None:
    """Sets `name=value` through /proc/sys, which shows the namespace of the thread that asks."""
    for setting in settings:
        name, _, value = setting.partition("=")
        Path("/proc/sys", *name.split(".")).write_text(value)
