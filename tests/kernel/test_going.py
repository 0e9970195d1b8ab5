"""Going from device to device on the real kernel: what the screen's list, its tabs and its diagnostics work with."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest
from looking import said_by, send_udp, wait_until
from test_discovery import holder

from bqltop.cli import main
from bqltop.holders import Holders
from bqltop.kernel import bpfstats
from bqltop.kernel.netns import resolve
from bqltop.many import Many
from bqltop.model import LinkStats, QueueSample
from bqltop.roster import Roster
from bqltop.sampler import Sampler

pytestmark = pytest.mark.usefixtures("require_root")


class Watched:
    """A Many that runs in a thread, what it yields kept by stream."""

    def __init__(self, many: Many, interval: float = 0.05):
        self.many = many
        self.samples: dict[int, list] = {}
        self.told: list[tuple[int | None, str]] = []
        self._thread = threading.Thread(target=self._run, args=(interval,))
        self._thread.start()

    def _run(self, interval: float) -> None:
        for sample in self.many.every(interval):
            self.samples.setdefault(sample.stream, []).append(sample)

    def tell(self, stream: int | None, why: str) -> None:
        self.told.append((stream, why))

    def close(self) -> None:
        self.many.close()
        self._thread.join(5)


@pytest.fixture
def run(factory):
    """``run(many)``: it runs until the test ends."""

    def start(many: Many, interval: float = 0.05) -> Watched:
        watched = Watched(many, interval)
        factory.stack.push(many)
        factory.stack.callback(watched.close)
        return watched

    return start


def test_devices_come_and_go_while_the_others_are_sampled(veth_pair, run):
    pair = veth_pair()
    many = Many([Sampler("veth0", pair.sender.netns, use_bpf=False)])
    roster, watched = Roster(many, lambda which, where: Sampler(which, where, use_bpf=False), use_bpf=False), run(many)
    there = resolve(pair.receiver.netns)
    roster.watch(there, pair.receiver.ifindex, watched.tell)
    assert wait_until(lambda: len(watched.samples.get(1, ())) > 2)
    assert watched.told == [(1, "")]
    assert roster.stream_of(there, pair.receiver.ifindex) == 1
    assert watched.samples[1][0].device.netns == pair.receiver.netns
    roster.drop(1)
    assert wait_until(lambda: many.sampler(1) is None)
    before = len(watched.samples[1])
    assert wait_until(lambda: len(watched.samples[0]) > 5)
    assert len(watched.samples[1]) <= before + 1
    roster.watch(there, pair.receiver.ifindex, watched.tell)
    assert wait_until(lambda: watched.samples.get(2))
    assert watched.told[-1] == (2, ""), "a number is never used twice"


def test_a_slow_pace_does_not_keep_a_new_device_waiting(veth_pair, run):
    pair, many = veth_pair(), Many()
    watched = run(many, 30.0)
    roster = Roster(many, lambda which, where: Sampler(which, where, use_bpf=False), use_bpf=False)
    roster.watch(resolve(pair.sender.netns), "veth0", watched.tell)
    assert wait_until(lambda: watched.samples.get(0), seconds=5)


def test_what_cannot_be_watched_is_told_and_nothing_ends(veth_pair, run):
    pair = veth_pair()
    many = Many([Sampler("veth0", pair.sender.netns, use_bpf=False)])
    watched = run(many)
    roster = Roster(many, lambda which, where: Sampler(which, where, use_bpf=False), use_bpf=False)
    roster.watch(resolve(pair.sender.netns), 4711, watched.tell)
    assert wait_until(lambda: watched.told)
    stream, why = watched.told[0]
    assert stream is None
    assert 'no device "4711"' in why
    seen = len(watched.samples[0])
    assert wait_until(lambda: len(watched.samples[0]) > seen + 2)


def test_the_neighbours_of_a_watched_device(veth_pair, run):
    pair = veth_pair()
    many = Many([Sampler("veth0", pair.sender.netns, use_bpf=False)])
    roster = Roster(many, use_bpf=False)
    run(many)
    (peer,) = roster.neighbours(0)
    assert (peer.relation, peer.name, peer.namespace.name) == ("peer", "veth1", pair.receiver.netns)
    assert roster.neighbours(7) == []


def test_the_list_sees_who_is_stopped_with_nothing_attached(lab):
    built = lab(rules=20000)
    built.start_flood()
    roster = Roster()
    try:
        roster.list()
        stopped = []
        for _ in range(10):
            roll = roster.list()
            device = next(d for d in roll.devices if d.namespace.name == built.sender.netns and d.name == "veth0")
            stopped.append(roll.stopped.get(device.key, 0))
        assert max(stopped) > 0.5
        assert device.key in roll.rates
        quiet = next(d for d in roll.devices if d.namespace.name == built.sender.netns and d.name == "lo")
        assert quiet.key not in roll.stopped
    finally:
        roster.close()


def test_the_list_survives_namespaces_that_come_and_go(veth_pair):
    roster = Roster()
    try:
        for _ in range(3):
            pair = veth_pair()
            names = {(d.namespace.name, d.name) for d in roster.list().devices}
            assert (pair.sender.netns, "veth0") in names
            pair.close()
            names = {(d.namespace.name, d.name) for d in roster.list().devices}
            assert (pair.sender.netns, "veth0") not in names
    finally:
        roster.close()


@pytest.mark.parametrize("option", ["--json", "--text"])
def test_the_list_once_for_scripts(veth_pair, capsys, option):
    pair = veth_pair()
    assert main([option]) == 0
    out = capsys.readouterr().out
    assert pair.sender.netns in out
    if option == "--json":
        found = {(d["netns"], d["name"]): d for d in map(json.loads, out.splitlines())}
        assert found[pair.sender.netns, "veth0"]["peer"]["netns"] == pair.receiver.netns
        assert found[None, "lo"]["netns_path"] is None


def test_a_veth_without_its_ring_says_why_and_what_to_type(veth_pair):
    pair = veth_pair(napi_mode=False)
    with Sampler("veth0", pair.sender.netns, use_bpf=False) as sampler:
        device = sampler.sample().device
        assert device.napi_mode is False
        assert device.napi_reason.startswith("no ring in use")
        for command in device.napi_commands:
            said_by("sh", "-c", command)
        assert wait_until(lambda: sampler.sample().device.napi_mode)


def test_a_tuns_holder_and_whether_it_takes_packets(netns):
    name = netns()
    with holder(name, "tap'x"), Sampler("tap'x", name) as sampler:
        (held,) = sampler.sample().tun_queues
        assert (held.vhost, held.attached, held.certain) == (False, True, True)
        assert "tap" in held.flags

        holders = Holders()

        def takes(packets: int, waiting: int) -> bool | None:
            """What is found at a look that is due, with so many packets taken out so far and waiting."""
            holders._due = 0.0
            link, queues = LinkStats(packets, 0, 0, 0, 0, 0, 0, 0), (QueueSample(0, ring_used=waiting, ring_size=500),)
            return holders.read(sampler.device, sampler.namespace, link, queues)[0].takes

        assert takes(10, 5) is None, "one look tells nothing"
        assert takes(10, 5) is False
        assert takes(12, 5) is True
        assert takes(12, 0) is None


def test_what_is_no_tun_has_no_holders(veth_pair):
    with Sampler("veth0", veth_pair().sender.netns, use_bpf=False) as sampler:
        assert sampler.sample().tun_queues == ()


def test_the_kernel_counts_our_programs_only_while_asked(veth_pair, run):
    switched = Path("/proc/sys/kernel/bpf_stats_enabled")
    before = switched.read_text()
    pair = veth_pair()
    many = Many([Sampler("veth0", pair.sender.netns)])
    roster, watched = Roster(many), run(many)
    assert wait_until(lambda: watched.samples.get(0))
    assert watched.samples[0][-1].own.bpf_runs is None
    assert roster.account(True) is None
    send_udp(pair.sender, 200)
    assert wait_until(lambda: (watched.samples[0][-1].own.bpf_runs or 0) > 200)
    assert watched.samples[0][-1].own.bpf_ns > 0
    roster.account(False)
    assert wait_until(lambda: watched.samples[0][-1].own.bpf_runs is None)
    assert switched.read_text() == before
    roster.close()


def test_statistics_end_with_their_descriptor():
    statistics = bpfstats.Statistics()
    statistics.close()
    statistics.close()
    assert bpfstats.read([]) == (0, 0)
