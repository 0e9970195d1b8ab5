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
