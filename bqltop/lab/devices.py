"""Devices in namespaces of their own: a veth pair, and single ifb, tun and dummy devices."""

from __future__ import annotations

import fcntl
import itertools
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Self

from bqltop.lab.scope import LabError, LabUnavailable, Scope, in_netns
from bqltop.lab.xdp import number_queues

# RFC 2544 set 198.18.0.0/15 aside for benchmarks: never a real host, even if it should leak.
NETWORK = "198.18.0"
SENDER_ADDRESS = f"{NETWORK}.1"
RECEIVER_ADDRESS = f"{NETWORK}.2"
# Nobody has this address, yet its frames go to the receiver: neither socket nor forwarding, so dropped without an ICMP error.
SINK_ADDRESS = f"{NETWORK}.3"

IFF_TUN, IFF_NO_PI, IFF_MULTI_QUEUE = 0x0001, 0x1000, 0x0100  # linux/if_tun.h
TUNSETIFF = 0x400454CA

_serial = itertools.count(1)


@dataclass(frozen=True)
class End:
    """One device: netns (name under /run/netns), device (name), ifindex (valid in that netns), IPv4 address, MAC address."""

    netns: str
    device: str
    ifindex: int
    address: str = ""
    mac: str = ""
    fds: tuple[int, ...] = field(default=(), compare=False)


def unknown_kind(error: LabError, kind: str) -> LabError:
    """iproute2's message for a device type or qdisc that the kernel has not, as a sentence; other errors unchanged."""
    signs = ("Unknown device type", "Operation not supported", "Specified qdisc", "qdisc kind is unknown")
    if any(sign in str(error) for sign in signs):
        return LabUnavailable(f"This kernel has no {kind} (is its module installed?).")
    return error


class Pair:
    """A veth pair between two new namespaces, both ends up, neighbours static, in NAPI mode, and not one packet on it.

    queues: TX and RX queues of each end. qdisc: see `set_qdisc`; empty = what the kernel puts there.
    napi_mode: packets go through the ring (sender TSO off, receiver GRO on) instead of straight into the peer's backlog.
    threaded: the receiver polls in kernel threads instead of in softirq (only with napi_mode: else it does not poll).
    wake_all: work around a fault of veth, with which only queue 0 is ever woken (see xdp.py).
    """

    def __init__(
        self,
        queues: int = 1,
        qdisc: str = "",
        napi_mode: bool = True,
        threaded: bool = False,
        wake_all: bool = True,
        prefix: str = "",
    ) -> None:
        self.queues = queues
        if queues == 1 and qdisc.split()[:1] == ["mq"]:
            raise LabError("The qdisc mq needs a device with several queues: ask for 2 or more.")
        self.scope = Scope(prefix)
        try:
            self._build()
            if queues > 1 and wake_all:
                self._number_queues()
            self._set_mode(napi_mode, threaded)
            if qdisc:
                self.set_qdisc(qdisc)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Removes both namespaces and what is in them."""
        self.scope.close()

    def _build(self) -> None:
        scope = self.scope
        sender = scope.netns("tx", "namespace of the sender")
        receiver = scope.netns("rx", "namespace of the receiver")
        self._add_link(sender, receiver)
        for netns, device, address in ((sender, "veth0", SENDER_ADDRESS), (receiver, "veth1", RECEIVER_ADDRESS)):
            scope.run("ip", "-n", netns, "link", "set", device, "up")
            scope.run("ip", "-n", netns, "addr", "add", f"{address}/24", "dev", device)
        self.sender = self._end(sender, "veth0", SENDER_ADDRESS)
        self.receiver = self._end(receiver, "veth1", RECEIVER_ADDRESS)
        self._add_neighbours()

    def _number_queues(self) -> None:
        words = "# an XDP program is attached to veth1 for a moment: without it veth wakes only queue 0"
        try:
            in_netns(self.receiver.netns, number_queues, self.receiver.ifindex)
        except OSError as error:
            words += f" (it failed: {error.strerror or error})"
        self.scope.steps.append((words, ""))

    def _set_mode(self, napi_mode: bool, threaded: bool) -> None:
        """After `_number_queues`: detaching an XDP program switches TSO on again."""
        scope, here, there = self.scope, self.sender, self.receiver
        if not napi_mode:
            scope.inside(there.netns, "ethtool", "-K", there.device, "gro", "off", why="no NAPI: past the ring")
            return
        scope.inside(here.netns, "ethtool", "-K", here.device, "tso", "off", why="every packet through the ring")
        scope.inside(there.netns, "ethtool", "-K", there.device, "gro", "on", why="NAPI at the receiver")
        if threaded:
            path = f"/sys/class/net/{there.device}/threaded"
            scope.inside(there.netns, "sh", "-c", f"echo 1 > {path}", why="poll in kernel threads")

    def _add_link(self, sender: str, receiver: str) -> None:
        queues = ["numtxqueues", str(self.queues), "numrxqueues", str(self.queues)]
        self.scope.tell_guardian("link", sender, "veth0")
        try:
            self.scope.run(
                "ip", "-n", sender, "link", "add", "veth0", *queues, "type", "veth",
                "peer", "name", "veth1", "netns", receiver, *queues, why="the pair",
            )  # fmt: skip
        except LabError as error:
            raise unknown_kind(error, "veth") from None

    def _add_neighbours(self) -> None:
        for here, there, address in (
            (self.sender, self.receiver, RECEIVER_ADDRESS),
            (self.sender, self.receiver, SINK_ADDRESS),
            (self.receiver, self.sender, SENDER_ADDRESS),
        ):
            self.scope.run(
                "ip", "-n", here.netns, "neigh", "replace", address, "lladdr", there.mac, "dev", here.device, "nud", "permanent",
                why="static: no ARP on the wire",
            )  # fmt: skip

    def _end(self, netns: str, device: str, address: str) -> End:
        link = self.scope.link(netns, device)
        return End(netns, device, link["ifindex"], address, link["address"])

    def set_qdisc(self, qdisc: str) -> None:
        """Replaces the sender's root qdisc.

        qdisc: the words after `tc qdisc replace dev veth0 root`: "pfifo limit 1000", "mq", "noqueue". More tc commands
        may follow after semicolons, with {dev} for the device:
        "handle 1: htb default 10; class add dev {dev} parent 1: classid 1:10 htb rate 100mbit".
        """
        root, *more = (part.split() for part in qdisc.replace("{dev}", self.sender.device).split(";"))
        try:
            self.scope.run("tc", "-n", self.sender.netns, "qdisc", "replace", "dev", self.sender.device, "root", *root)
            for words in more:
                self.scope.run("tc", "-n", self.sender.netns, *words)
        except LabError as error:
            raise unknown_kind(error, f"qdisc {qdisc}") from None

    def description(self) -> list[str]:
        """The shell commands that build the same."""
        return self.scope.description()


def unique_name(kind: str) -> str:
    """A device name that no other process of this host makes; at most 15 characters (IFNAMSIZ - 1)."""
    return f"{kind}{os.getpid()}x{next(_serial)}"[:15]


@contextmanager
def _single(kind: str, queues: int, prefix: str) -> Iterator[End]:
    """A device that `ip link add` makes, up, in a namespace of its own."""
    with Scope(prefix) as scope:
        netns, name = scope.netns(kind), unique_name(kind)
        scope.tell_guardian("link", netns, name)
        try:
            words = f"link add {name} numtxqueues {queues} numrxqueues {queues} type {kind}"
            scope.run("ip", "-n", netns, *words.split())
        except LabError as error:
            raise unknown_kind(error, kind) from None
        scope.run("ip", "-n", netns, "link", "set", name, "up")
        link = scope.link(netns, name)
        yield End(netns, name, link["ifindex"], mac=link["address"])


def ifb(queues: int = 1, prefix: str = ""):
    """An ifb device: it has BQL files, whose values never move."""
    return _single("ifb", queues, prefix)


def dummy(queues: int = 1, prefix: str = ""):
    """A dummy device. Raises LabUnavailable where the kernel has none."""
    return _single("dummy", queues, prefix)


def open_tun(name: str, queues: int, extra_flags: int = 0) -> tuple[int, ...]:
    """Makes a tun device in this thread's namespace; one file descriptor per queue, non-blocking, reads give whole packets.

    extra_flags: more IFF_ flags of linux/if_tun.h. Raises OSError.
    """
    flags = IFF_TUN | IFF_NO_PI | extra_flags | (IFF_MULTI_QUEUE if queues > 1 else 0)
    fds: list[int] = []
    try:
        for _ in range(queues):
            fds.append(os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC))
            fcntl.ioctl(fds[-1], TUNSETIFF, struct.pack("16sH22x", name.encode(), flags))
    except OSError:
        for fd in fds:
            os.close(fd)
        raise
    return tuple(fds)


@contextmanager
def tun(queues: int = 1, extra_flags: int = 0, prefix: str = "") -> Iterator[End]:
    """A tun device, up, with an address and nobody reading: `End.fds` has the descriptor of each queue. It ends with them."""
    with Scope(prefix) as scope:
        netns, name = scope.netns("tun"), unique_name("tun")
        try:
            fds = in_netns(netns, open_tun, name, queues, extra_flags)
        except FileNotFoundError:
            raise LabUnavailable("This host has no /dev/net/tun: modprobe tun.") from None
        except OSError as error:
            raise LabUnavailable(f"tun refused to make a device: {error.strerror}.") from None
        try:
            scope.run("ip", "-n", netns, "addr", "add", f"{SENDER_ADDRESS}/24", "dev", name)
            scope.run("ip", "-n", netns, "link", "set", name, "up")
            yield End(netns, name, scope.link(netns, name)["ifindex"], SENDER_ADDRESS, fds=fds)
        finally:
            for fd in fds:
                os.close(fd)
