"""The lab: a veth pair, a UDP flood into one end and a slow consumer at the other, in namespaces of its own.

    with Lab(LabSpec(rules=15000)) as lab:
        lab.start_flood()
        ...                         # look at lab.sender.device in lab.sender.netns
        print(lab.stop_flood())

The demo, the tests and the benchmarks all use it. It needs root and removes itself, however the process ends.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field

from bqltop.lab.devices import SINK_ADDRESS, Pair
from bqltop.lab.flooder import Flooders, FloodResult
from bqltop.lab.rules import set_rules
from bqltop.lab.scope import LabError, call, default_prefix

FIRST_PORT = 9000
FLOWS_PER_QUEUE = 16  # enough that the hash leaves no queue empty: of 4 queues, one does in 1 of 25 million labs
BOUNDS = {
    "queues": (1, 1024),
    "rules": (0, 1_000_000),
    "packet_size": (1, 1472),  # 1500 bytes of MTU less the IPv4 and UDP headers
    "burst": (0, 1 << 30),
    "pause_ms": (0, 60_000),
    "flows": (0, 16384),
    "flooders": (1, 64),
    "pps": (0, 100_000_000),
}


@dataclass(frozen=True)
class LabSpec:
    """What to build.

    queues: TX queues of the sender, RX queues of the receiver.
    qdisc: words after `tc qdisc replace dev veth0 root` ("pfifo limit 1000", "mq", "noqueue", "htb default 1; class add ...").
    rules: filter rules that each packet is compared with at the receiver; the more, the slower it is. 0 = none.
    packet_size: bytes of UDP payload, 1 to 1472 (with 1500 bytes of MTU).
    burst: packets per burst; 0 = no pauses. pause_ms: silence between bursts, milliseconds.
    pps: limit of a continuous flood, packets per second and process; 0 = as fast as it goes.
    flows: UDP flows per process, hashed over the queues; 0 = 1 for one queue, else 16 per queue. flooders: flood processes.
    threaded: the receiver's NAPI polls in kernel threads (else in softirq, which shares the sender's CPU: hardly a ring to see).
    napi_mode: packets go through veth's ring; False = straight to the peer's backlog, no ring, no backpressure.
    wake_all: work around a fault of veth, with which only TX queue 0 is ever woken (see xdp.py); False shows lost wake-ups.
    prefix: names of namespaces begin with it.
    """

    queues: int = 1
    qdisc: str = "pfifo"
    rules: int = 5000
    packet_size: int = 1000
    burst: int = 0
    pause_ms: float = 10.0
    threaded: bool = True
    napi_mode: bool = True
    flows: int = 0
    flooders: int = 1
    pps: int = 0
    wake_all: bool = True
    prefix: str = field(default_factory=default_prefix)

    def __post_init__(self) -> None:
        for name, (low, high) in BOUNDS.items():
            if not low <= getattr(self, name) <= high:
                raise LabError(f"{name} is {getattr(self, name)}, but has to be from {low} to {high}.")

    @property
    def flow_count(self) -> int:
        """Flows of each flood process, 0 resolved."""
        return self.flows or (1 if self.queues == 1 else FLOWS_PER_QUEUE * self.queues)

QUIET_LOOKS = 5
"""Looks 20 ms apart at which nothing has moved, after which the lab counts as at rest."""


class Lab:
    """Built by entering it. sender, receiver: devices.End. Raises LabError, with a sentence that says what to do."""

    def __init__(self, spec: LabSpec | None = None) -> None:
        self.spec = spec or LabSpec()
        self._flooders: Flooders | None = None

    def __enter__(self) -> Lab:
        spec = self.spec
        self._pair = Pair(spec.queues, spec.qdisc, spec.napi_mode, spec.threaded, spec.wake_all, spec.prefix)
        try:
            self.sender, self.receiver = self._pair.sender, self._pair.receiver
            if spec.rules:
                self.set_rules(spec.rules)
        except BaseException:
            self._pair.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the flood and removes everything; returns when it is gone."""
        try:
            if self._flooders:
                self._flooders.kill()
        finally:
            self._flooders = None
            self._pair.close()

    def set_rules(self, rules: int) -> None:
        """Replaces the receiver's rules by `rules` new ones; packets in flight see the old set or the new, never a mixture."""
        set_rules(self._pair.scope, self.receiver.netns, rules)

    def set_qdisc(self, qdisc: str) -> None:
        """Replaces the sender's root qdisc; words as in LabSpec.qdisc."""
        self._pair.set_qdisc(qdisc)

    def start_flood(self, seconds: float | None = None) -> None:
        """Starts the flood and returns when it runs. seconds: how long at most; None = until `stop_flood`."""
        if self._flooders:
            raise LabError("The flood is running already: stop_flood first.")
        options = {
            "address": SINK_ADDRESS,
            "first_port": FIRST_PORT,
            "flows": self.spec.flow_count,
            "packet_size": self.spec.packet_size,
            "burst": self.spec.burst,
            "pause_ms": self.spec.pause_ms,
            "pps": self.spec.pps,
            "seconds": seconds,
        }
        self._flooders = Flooders(self._pair.scope, self.sender.netns, options, self.spec.flooders)

    @property
    def flooding(self) -> bool:
        """Whether a flood process is running."""
        return self._flooders is not None and self._flooders.running()

    def stop_flood(self) -> FloodResult:
        """Ends the flood and says what it sent. Packets may still wait in qdisc and ring: see `settle`."""
        return self._end_flood(stop=True)

    def flood(self, seconds: float) -> FloodResult:
        """Floods for so many seconds, waits until the last packet has arrived, and says what was sent."""
        self.start_flood(seconds)
        result = self._end_flood(stop=False)
        self.settle()
        return result

    def _end_flood(self, stop: bool) -> FloodResult:
        if not self._flooders:
            raise LabError("There is no flood to stop: start_flood first.")
        flooders, self._flooders = self._flooders, None
        return flooders.result(stop)

    def settle(self, timeout: float = 10.0) -> None:
        """Waits until the sender's qdisc is empty and all that left it has been received. Raises LabError after `timeout` s.

        In NAPI mode veth counts a packet as sent when the receiver takes it out of the ring, so the two counts are always
        equal: the ring is empty when the qdisc is and the count no longer grows, for longer than one poll takes."""
        deadline = time.monotonic() + timeout
        before, still = -1, 0
        while time.monotonic() < deadline:
            held = sum(qdisc.get("qlen", 0) for qdisc in self._qdiscs())
            received, sent = self._received(), self._transmitted()
            still = still + 1 if not held and received == sent == before else 0
            if still == QUIET_LOOKS:
                return
            before = received
            time.sleep(0.02)
        raise LabError(f"After {timeout} s packets still wait on {self.sender.device}.")

    def _qdiscs(self) -> list[dict]:
        return json.loads(call(["tc", "-n", self.sender.netns, "-s", "-j", "qdisc", "show", "dev", self.sender.device]))

    def _received(self) -> int:
        return self._packets(self.receiver.netns, self.receiver.device, "rx")

    def _transmitted(self) -> int:
        return self._packets(self.sender.netns, self.sender.device, "tx")

    @staticmethod
    def _packets(netns: str, device: str, direction: str) -> int:
        links = json.loads(call(["ip", "-n", netns, "-s", "-j", "link", "show", "dev", device]))
        return links[0]["stats64"][direction]["packets"]

    def description(self) -> list[str]:
        """What was built: the shell commands that do the same, each with its reason, and the flood in words."""
        spec = self.spec
        rhythm = f"bursts of {spec.burst}, {spec.pause_ms:g} ms apart" if spec.burst else "no pauses"
        if spec.pps and not spec.burst:
            rhythm = f"{spec.pps} packets/s each"
        flood = (
            f"# flood: {spec.flooders} process(es), sendmmsg, UDP {spec.packet_size} bytes,"
            f" {self.sender.address} -> {SINK_ADDRESS} (which nobody has: dropped after the rules),"
            f" {spec.flow_count} flow(s), {rhythm}"
        )
        return [*self._pair.description(), flood]
