"""A made-up host: devices of several namespaces, and what bqltop.roster.Roster would do with them."""

from __future__ import annotations

from dataclasses import replace

from fake_source import FakeSource
from fed import SilentSource

from bqltop.discovery.devices import Listed, Rates
from bqltop.discovery.neighbours import Neighbour
from bqltop.model import LinkStats, Namespace, Peer, Unit
from bqltop.roster import Roll
from bqltop.tui import BqltopApp

OURS = Namespace("/proc/1/ns/net", 1)
WEB = Namespace("/proc/4711/ns/net", 2, "pid:4711")
BLUE = Namespace("/run/netns/blue", 3, "blue")


def listed(name: str, ifindex: int, where: Namespace = OURS, **more) -> Listed:
    given = {"driver": "veth", "kind": "veth", "up": True, "oper_state": "UP", "bql": False, "qdisc": "pfifo",
             "stats": LinkStats(0, 0, 0, 0, 0, 0, 0, 0)} | more  # fmt: skip
    return Listed(name, ifindex, where, **given)


HOST = (
    listed("lo", 1, driver=None, kind=None, oper_state="UNKNOWN", qdisc="noqueue"),
    listed("eth0", 2, driver="mlx5_core", kind=None, bql=True, unit=Unit.BYTES, tx_queues=64, qdisc="mq"),
    listed("veth0", 7, peer=Peer(2, "eth0", "pid:4711"), backlog_packets=1000),
    listed("br0", 8, driver="bridge", kind="bridge", qdisc="noqueue"),
    listed("eth0", 2, WEB, owner="docker web-1", peer=Peer(7, "veth0")),
    listed("veth0", 7, BLUE, owner="haproxy [812]", bql=True, unit=Unit.PACKETS, peer=Peer(9)),
    listed("[red]", 3, BLUE, owner="x'y\"z [813]", driver="tun", kind="tun"),
    listed("é1-0123456789ab", 4, BLUE, oper_state="DOWN", up=False, bql=None),
)


class FakeDevices:
    """``HOST``, or what is given. ``answer``: what ``watch`` tells; a stream, or None and why."""

    def __init__(self, devices: tuple[Listed, ...] = HOST) -> None:
        self.devices = devices
        self.found: list[Neighbour] = []
        self.watched: dict[tuple[int, int], int] = {}
        self.asked: list[tuple[Namespace, int | str]] = []
        self.dropped: list[int] = []
        self.accounts: list[bool] = []
        self.answer: tuple[int | None, str] = (0, "")
        self.looks = 0

    def list(self) -> Roll:
        self.looks += 1
        busy = {"veth0": 71_200.0, "eth0": 12_000.0}
        rates = {d.key: Rates(busy.get(d.name, 0.0), 0.0, 20.0, 1400.0 if d.backlog_packets else 0.0, 0.0) for d in self.devices}
        stopped = {d.key: 0.93 for d in self.devices if d.backlog_packets}
        return Roll(self.devices, rates, stopped, dict(self.watched))

    def stream_of(self, where: Namespace, ifindex: int) -> int | None:
        return self.watched.get((where.inode, ifindex))

    def neighbours(self, stream: int) -> list[Neighbour]:
        return self.found

    def watch(self, where: Namespace, which: int | str, tell) -> None:
        self.asked.append((where, which))
        stream, why = self.answer
        if stream is not None:
            self.watched[where.inode, which] = stream
        tell(stream, why)

    def drop(self, stream: int) -> None:
        self.dropped.append(stream)
        self.watched = {key: value for key, value in self.watched.items() if value != stream}

    def account(self, on: bool) -> str | None:
        self.accounts.append(on)
        return None


class GoingApp(BqltopApp):
    """An application that is fed by hand with the samples of several made-up devices."""

    def __init__(self, devices: FakeDevices | None = None, **options) -> None:
        super().__init__(SilentSource(), devices=devices, **options)
        self.fakes: dict[int, FakeSource] = {}

    def play(self, count: int, **fakes: FakeSource) -> None:
        """``play(30, s0=FakeSource(...), s1=...)``: ``count`` samples of each device, and draw. Sources once given go on."""
        self.fakes |= {int(name[1:]): fake for name, fake in fakes.items()}
        for _ in range(count):
            for stream, fake in self.fakes.items():
                self.take(replace(fake.sample(), stream=stream))
        self.draw_now()

    async def on_unmount(self) -> None:
        self.source.close()
        self.stop_watching()
