"""The shell command that a change equals, ready to be copied. Pure text."""

from __future__ import annotations

import shlex

from bqltop.kernel.netns import RUN_NETNS
from bqltop.model import Namespace
from bqltop.tuning.knobs import Knob, Source, Value

ETHTOOL_OPTIONS = {Source.COALESCE: "-C", Source.RINGS: "-G", Source.CHANNELS: "-L", Source.FEATURE: "-K"}


def command(knob: Knob, device: str, ns: Namespace | None, value: Value, queue: int | None = None) -> str:
    """One line for sh, equal to setting the knob. ``queue`` None: every queue. ``ns`` None: the shell's own."""
    if knob.source is Source.BQL:
        return _inside(ns, _bql(knob, device, value, queue), sysfs=True)
    if knob.source is Source.SYSFS:
        path = shlex.quote(f"/sys/class/net/{device}/{knob.name}")
        return _inside(ns, f"echo {value} > {path}", sysfs=True)
    name = shlex.quote(device)
    if knob.source is Source.LINK:
        return _inside(ns, f"ip link set dev {name} txqueuelen {value}")
    if knob.source in (Source.QDISC, Source.QDISC_OPTION):
        return _inside(ns, f"tc qdisc replace dev {name} root {value}")
    return _inside(ns, f"ethtool {ETHTOOL_OPTIONS[knob.source]} {name} {knob.name} {knob.show(value)}")


def put_back_qdisc(device: str, ns: Namespace | None) -> str:
    """What brings back the root qdisc the kernel had chosen by itself."""
    return _inside(ns, f"tc qdisc del dev {shlex.quote(device)} root")


def recreate_qdisc(device: str, ns: Namespace | None, value: Value, handle: int) -> str:
    """For a root qdisc that cannot be changed in place: another of its kind, which takes another handle."""
    return _inside(ns, f"tc qdisc replace dev {shlex.quote(device)} root handle {handle >> 16:x}: {value}")


def _bql(knob: Knob, device: str, value: Value, queue: int | None) -> str:
    before, after = f"/sys/class/net/{device}/queues/tx-", f"/byte_queue_limits/{knob.name}"
    if queue is not None:
        return f"echo {value} > {shlex.quote(f'{before}{queue}{after}')}"
    return f'for file in {shlex.quote(before)}*{after}; do echo {value} > "$file"; done'


def _inside(ns: Namespace | None, line: str, sysfs: bool = False) -> str:
    """The line as it must be typed to reach a namespace: by its name, or by a path when it has none. ``sysfs``: it
    writes there.

    /sys shows the namespace it was mounted from; ``ip netns exec`` mounts it anew by itself, ``nsenter`` does not.
    """
    if ns is None or ns.name is None:
        return line
    if ns.path == f"{RUN_NETNS}/{ns.name}":
        before = f"ip netns exec {shlex.quote(ns.name)} "
        return before + (f"sh -c {shlex.quote(line)}" if sysfs else line)
    before = f"nsenter --net={shlex.quote(ns.path)} "
    return before + (f"unshare --mount sh -c {shlex.quote('mount -t sysfs sysfs /sys && ' + line)}" if sysfs else line)
