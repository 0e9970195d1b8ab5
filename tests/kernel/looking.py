"""What iproute2, ethtool and sysfs say of a device: the other side of every comparison in these tests."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from bqltop.lab import End, in_netns
from bqltop.window import Window, between


def said_by(*argv: str) -> str:
    """Standard output of a tool that must succeed."""
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout


def inside(end: End, *argv: str) -> str:
    """The same, in the namespace of a device."""
    return said_by("ip", "netns", "exec", end.netns, *argv)


def tc_qdiscs(end: End) -> list[dict]:
    """`tc -s -j qdisc show` of a device."""
    return json.loads(said_by("tc", "-n", end.netns, "-s", "-j", "qdisc", "show", "dev", end.device))


def ip_counters(end: End, direction: str) -> dict:
    """`ip -s -j link`: the counters of one direction ("tx", "rx")."""
    return json.loads(said_by("ip", "-n", end.netns, "-s", "-j", "link", "show", "dev", end.device))[0]["stats64"][direction]


def ethtool_counters(end: End) -> dict[str, int]:
    """`ethtool -S` of a device."""
    lines = (line.rpartition(":") for line in inside(end, "ethtool", "-S", end.device).splitlines()[1:])
    return {name.strip(): int(value) for name, _, value in lines}


def queue_file(end: End, queue: int, name: str) -> Path:
    return Path(f"/sys/class/net/{end.device}/queues/tx-{queue}", name)


def read_queue_file(end: End, queue: int, name: str) -> int:
    """A number from a TX queue's folder in sysfs, in the device's own namespace."""
    return int(inside(end, "cat", str(queue_file(end, queue, name))))


def write_queue_file(end: End, queue: int, name: str, value: int) -> None:
    inside(end, "sh", "-c", f"echo {value} > {queue_file(end, queue, name)}")


def send_udp(end: End, count: int) -> None:
    """Send so many packets from a lab's sender to the address that nobody has."""
    import socket

    def send() -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            for _ in range(count):
                sock.sendto(b"bqltop", ("198.18.0.3", 9000))

    in_netns(end.netns, send)


def wait_until(condition: Callable[[], object], seconds: float = 10) -> bool:
    """Whether `condition()` came true in time."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.02)
    return False


def window_over(sampler, seconds: float) -> Window:
    """The window between now and then."""
    older = sampler.sample()
    time.sleep(seconds)
    window = between(older, sampler.sample())
    assert window is not None
    return window


ROOT = Path(__file__).parents[2]


def bqltop(*words: str, before: tuple[str, ...] = (), patch: str = "", **options) -> subprocess.CompletedProcess[str]:
    """Runs bqltop to its end, without a terminal. ``before``: words of a command that runs it (setpriv ...);
    ``patch``: Python run in it first, to take something away."""
    import sys

    code = f"{patch}\nimport sys\nfrom bqltop.cli import main\nsys.exit(main(sys.argv[1:]))"
    settings = {"capture_output": True, "text": True, "stdin": subprocess.DEVNULL, "timeout": 60, "cwd": ROOT} | options
    return subprocess.run([*before, sys.executable, "-c", code, *words], **settings)


def one_object(done: subprocess.CompletedProcess[str]) -> dict:
    """The one JSON line that a run must have printed, and nothing else."""
    assert (done.returncode, done.stderr) == (0, "")
    (line,) = done.stdout.splitlines()
    return json.loads(line)


def one_line(done: subprocess.CompletedProcess[str]) -> str:
    """What a run that was refused must have said: one line on standard error, status 2."""
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.endswith("\n")
    (line,) = done.stderr.splitlines()
    assert line.startswith("bqltop: ")
    return line
