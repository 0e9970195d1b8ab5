"""What the running kernel really offers: every answer comes from trying it, none from its version."""

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from .devices import tuntap, usbnet
from .devices.shell import load_modules, namespace, read_bql, sh, works
from .devices.veth import veth_lab


@dataclass(frozen=True)
class Answer:
    """Whether it is there, and if not, why that is believed."""

    there: bool
    reason: str = ""


def bql_in_use(device: str, netns: str | None = None) -> Answer:
    """
    Whether the driver of `device` does BQL; call it after traffic has gone out.

    Older kernels show the sysfs folder on every device, newer ones where the driver uses BQL only: the folder proves
    nothing, yet a limit above 0 does, for without BQL nothing ever sets it.
    """
    values = read_bql(device, netns=netns)
    if values is None:
        return Answer(False, f"{device} has no byte_queue_limits in sysfs")
    if values["limit"] == 0:
        return Answer(False, f"{device}'s BQL limit stayed 0 while it sent")
    return Answer(True)


def veth_bql() -> Answer:
    with veth_lab(rules=0) as lab:
        lab.flood(0.3)
        return bql_in_use(lab.sender.device, lab.sender.netns)


def usbnet_device() -> Answer:
    missing = usbnet.available()
    return Answer(missing is None, missing or "")


def usbnet_bql() -> Answer:
    if not (answer := usbnet_device()).there:
        return answer
    with usbnet.usb_pair() as pair:
        works(f"ping -c 3 -i 0.2 -W 1 {pair.address}")
        return bql_in_use(pair.device)


def tun_backpressure() -> Answer:
    known = tuntap.features()
    return Answer(bool(known & tuntap.IFF_BACKPRESSURE), f"TUNGETFEATURES is 0x{known:04x}, without 0x0080")


def kprobes() -> Answer:
    path = Path("/sys/kernel/tracing/kprobe_events")
    return Answer(path.exists(), f"there is no {path}")


def fentry() -> Answer:
    """fentry programs: type information, and trampolines on functions that ftrace knows."""
    if not Path("/sys/kernel/btf/vmlinux").exists():
        return Answer(False, "the kernel has no BTF")
    functions = Path("/sys/kernel/tracing/available_filter_functions")
    if not functions.exists():
        return Answer(False, "the kernel has no function tracer")
    symbols = Path("/proc/kallsyms").read_text()
    return Answer(" bpf_trampoline_link_prog" in symbols, "the kernel has no BPF trampolines")


def qdisc(kind: str) -> Answer:
    name = f"try-{uuid.uuid4().hex[:8]}"
    load_modules("dummy")
    with namespace(name):
        sh(f"ip -n {name} link add dummy1 numtxqueues 2 type dummy")
        return Answer(works(f"tc -n {name} qdisc add dev dummy1 root {kind}"), f"the kernel has no qdisc {kind}")


PROBES: dict[str, Callable[[], Answer]] = {
    "veth_bql": veth_bql,
    "usbnet": usbnet_device,
    "usbnet_bql": usbnet_bql,
    "tun_backpressure": tun_backpressure,
    "kprobes": kprobes,
    "fentry": fentry,
}


@cache
def capability(name: str) -> Answer:
    """The answer for one name of PROBES, or for qdisc_KIND. KeyError: no such capability."""
    if name.startswith("qdisc_"):
        return qdisc(name.removeprefix("qdisc_"))
    return PROBES[name]()
