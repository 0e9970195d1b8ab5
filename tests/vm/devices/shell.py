"""Running the system's tools, and reading what the kernel says about a device without bqltop: the truth to compare with."""

import json
import shlex
import subprocess
import time
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path


def sh(command: str, netns: str | None = None) -> str:
    """Output of a command (no shell syntax), run in a named network namespace; RuntimeError with its words when it fails."""
    words = shlex.split(command)
    if netns:
        words = ["ip", "netns", "exec", netns, *words]
    result = subprocess.run(words, capture_output=True, text=True)
    if result.returncode:
        raise RuntimeError(f"{command}: {(result.stderr or result.stdout).strip()}")
    return result.stdout


def works(command: str, netns: str | None = None) -> bool:
    """Whether a command succeeds."""
    try:
        sh(command, netns)
    except RuntimeError:
        return False
    return True


def load_modules(*names: str) -> None:
    """modprobe each, in silence: it may as well be built in, or not exist."""
    for name in names:
        subprocess.run(["modprobe", "-q", name], capture_output=True)


@contextmanager
def namespace(name: str):
    """A named network namespace with lo up and no IPv6 chatter, gone afterwards together with the devices in it."""
    sh(f"ip netns add {name}")
    try:
        sh(f"ip -n {name} link set lo up")
        works("sysctl -qw net.ipv6.conf.default.disable_ipv6=1", name)
        yield name
    finally:
        sh(f"ip netns del {name}")


def wait_for(condition: Callable[[], object], seconds: float, what: str):
    """The first true answer of `condition`; AssertionError when there is none in time."""
    deadline = time.monotonic() + seconds
    while not (answer := condition()):
        assert time.monotonic() < deadline, f"{what}: not within {seconds:g} s"
        time.sleep(0.05)
    return answer


def read_sysfs(device: str, *paths: str, netns: str | None = None) -> list[str]:
    """Files under /sys/class/net/DEVICE, stripped, all read in one go."""
    names = [f"/sys/class/net/{device}/{path}" for path in paths]
    if netns is None:
        return [Path(name).read_text().strip() for name in names]
    return sh("head -qn1 " + " ".join(names), netns).splitlines()


def read_bql(device: str, queue: int = 0, netns: str | None = None) -> dict[str, int] | None:
    """limit, limit_min, limit_max and inflight of a TX queue from sysfs; None where the kernel hides the folder."""
    names = ("limit", "limit_min", "limit_max", "inflight")
    try:
        values = read_sysfs(device, *(f"queues/tx-{queue}/byte_queue_limits/{name}" for name in names), netns=netns)
    except (OSError, RuntimeError):
        return None
    return dict(zip(names, map(int, values), strict=True))


def write_sysfs(device: str, path: str, value: object, netns: str | None = None) -> None:
    """Write one file under /sys/class/net/DEVICE, in the namespace's own sysfs."""
    target = f"/sys/class/net/{device}/{path}"
    sh(f"sh -c {shlex.quote(f'echo {value} > {target}')}", netns)


def link_stats(device: str, netns: str | None = None) -> dict[str, int]:
    """The device's own 64-bit counters: tx_packets, tx_dropped, ..."""
    words = f"ip -n {netns}" if netns else "ip"
    link = json.loads(sh(f"{words} -s -j link show {device}"))[0]["stats64"]
    return {f"{side}_{name}": value for side, values in link.items() for name, value in values.items()}


def qdiscs(device: str, netns: str | None = None) -> list[dict]:
    """What `tc -s -j qdisc` says of a device."""
    words = f"tc -n {netns}" if netns else "tc"
    return json.loads(sh(f"{words} -s -j qdisc show dev {device}"))
