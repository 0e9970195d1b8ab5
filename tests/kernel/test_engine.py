"""The engine on real devices: which queue a packet is counted on, whom it counts, and when it stops counting."""

from __future__ import annotations

import subprocess
import time

import pytest
from leftovers import own_programs
from looking import ethtool_counters, ip_counters, send_udp, wait_until

from bqltop.kernel import direct
from bqltop.kernel.btf import Btf
from bqltop.kernel.engine import CHUNK, DeviceGone, Engine
from bqltop.kernel.memory import Memory
from bqltop.kernel.netns import resolve
from bqltop.kernel.target import Ring, find

pytestmark = pytest.mark.usefixtures("require_root")


@pytest.fixture
def engine_on(factory):
    """`engine_on(end, driver)`: an engine on a device of a lab."""

    def make(end, driver: str) -> Engine:
        with Memory() as memory:
            target = find(memory, resolve(end.netns), end.ifindex, driver)
        made = Engine(target, bql=False)
        factory.stack.callback(made.close)
        return made

    return make


@pytest.fixture(params=["load", "helper"])
def either_way(request, monkeypatch):
    """How the programs read the kernel's memory: by a load where the kernel lets them, or all by the helper."""
    if request.param == "helper":
        monkeypatch.setattr(direct, "available", lambda: False)


def packets(engine: Engine) -> list[int]:
    engine.snapshot()
    return [queue.packets for queue in engine.queues()]


def test_the_target_is_the_device_and_its_peer(veth_pair):
    pair = veth_pair(queues=3)
    with Memory() as memory:
        here = find(memory, resolve(pair.sender.netns), pair.sender.ifindex, "veth")
        there = find(memory, resolve(pair.receiver.netns), pair.receiver.ifindex, "veth")
        name = Btf.vmlinux().offset("net_device", "name")
        assert memory.read(here.device + name, 16).rstrip(b"\0") == b"veth0"
        assert memory.read(here.peer + name, 16).rstrip(b"\0") == b"veth1"
    assert (here.peer, there.peer) == (there.device, here.device)
    assert (here.queues, here.ring, here.ring_count) == (3, Ring.VETH, 3)
    assert (here.ifindex, here.own_napi) == (pair.sender.ifindex, False)


def test_only_the_watched_device_is_counted(veth_pair, engine_on):
    watched, other = veth_pair(), veth_pair()
    engine = engine_on(watched.sender, "veth")
    send_udp(other.sender, 20)
    send_udp(watched.sender, 3)
    assert wait_until(lambda: ip_counters(other.receiver, "rx")["packets"] == 20)
    assert packets(engine) == [3]
    assert wait_until(lambda: [napi.work for napi in engine.napis()] == [3])


@pytest.mark.usefixtures("either_way")
def test_packets_are_counted_on_the_queue_they_went_through(lab, engine_on):
    built = lab(queues=8, rules=0)
    engine = engine_on(built.sender, "veth")
    built.flood(0.3)

    def received() -> list[int]:
        """What the peer took out of the ring of the same number."""
        return [number for name, number in ethtool_counters(built.receiver).items() if name.endswith("xdp_packets")]

    assert wait_until(lambda: packets(engine) == received())
    assert min(packets(engine)) > 0
    assert engine.strays() == 0


@pytest.mark.parametrize("queues", [1, CHUNK, CHUNK + 1, 200])
def test_every_queue_is_read_whatever_their_number(veth_pair, engine_on, queues):
    pair = veth_pair(queues=queues)
    engine = engine_on(pair.sender, "veth")
    engine.snapshot()
    assert engine.real_queues() == queues == len(engine.queues())
    last = engine.queues()[-1]
    # hold_time of a queue that was set up is a second (dql_init), and each has a ring of its own.
    assert (last.hold_time, last.ring_size, last.ring_used) == (engine.queues()[0].hold_time, 256, 0)
    assert last.hold_time > 0


def test_another_number_of_queues_is_noticed(veth_pair, engine_on):
    pair = veth_pair(queues=4)
    engine = engine_on(pair.sender, "veth")
    engine.snapshot()
    subprocess.run(["ip", "netns", "exec", pair.sender.netns, "ethtool", "-L", "veth0", "tx", "2", "rx", "2"], check=True)
    engine.snapshot()
    assert (engine.real_queues(), engine.target.queues) == (2, 4)


def test_a_device_that_was_deleted_is_gone_and_its_successor_is_not_counted(veth_pair, engine_on):
    pair = veth_pair()
    engine = engine_on(pair.sender, "veth")
    send_udp(pair.sender, 2)
    assert packets(engine) == [2]
    ip = ["ip", "-n", pair.sender.netns]
    subprocess.run([*ip, "link", "del", "veth0"], check=True)
    with pytest.raises(DeviceGone):
        engine.snapshot()
    subprocess.run([*ip, "link", "add", "veth0", "type", "veth", "peer", "name", "other"], check=True)
    subprocess.run([*ip, "link", "set", "veth0", "up"], check=True)
    subprocess.run([*ip, "link", "set", "other", "up"], check=True)
    with pytest.raises(DeviceGone):
        engine.snapshot()
    assert [queue.packets for queue in engine.queues()] == [2]


def test_another_namespaces_device_of_the_same_index_is_not_taken_for_ours(veth_pair, engine_on):
    first, second = veth_pair(), veth_pair()
    assert first.sender.ifindex == second.sender.ifindex
    engine = engine_on(first.sender, "veth")
    subprocess.run(["ip", "-n", first.sender.netns, "link", "del", "veth0"], check=True)
    send_udp(second.sender, 5)
    with pytest.raises(DeviceGone):
        engine.snapshot()
    assert engine.queues()[0].packets == 0


def test_state_bits_show_a_stopped_queue(lab, engine_on):
    built = lab(rules=20000)
    engine = engine_on(built.sender, "veth")
    built.start_flood()

    def state() -> int:
        engine.snapshot()
        return engine.queues()[0].state

    assert wait_until(lambda: state() == engine.bits.drv_xoff)
    built.stop_flood()
    built.settle()
    assert wait_until(lambda: state() == 0)


@pytest.mark.usefixtures("either_way")
def test_a_stop_is_counted_once_however_often_it_is_looked_at(lab, engine_on):
    built = lab(rules=20000)
    engine = engine_on(built.sender, "veth")
    built.start_flood()
    time.sleep(0.3)
    for _ in range(500):
        engine.snapshot()
    built.stop_flood()
    built.settle()
    assert wait_until(lambda: packets(engine) == [napi.work for napi in engine.napis()])
    (queue,) = engine.queues()
    (napi,) = engine.napis()
    # veth wakes its queue in a poll: there cannot be more stops than polls, and a full ring answers once a stop.
    assert 0 < queue.stops_driver <= napi.polls
    assert queue.busy <= queue.stops_driver


@pytest.mark.usefixtures("either_way")
def test_time_goes_on_while_stopped_and_stands_still_when_not(lab, engine_on):
    built = lab(rules=20000)
    engine = engine_on(built.sender, "veth")

    def stopped() -> int:
        engine.snapshot()
        return engine.queues()[0].stopped_ns

    assert stopped() == 0
    built.start_flood()
    assert wait_until(lambda: stopped() > 50_000_000)
    built.stop_flood()
    built.settle()
    assert wait_until(lambda: stopped() and engine.queues()[0].state == 0)
    at_rest = stopped()
    time.sleep(0.05)
    assert stopped() == at_rest


def test_closing_detaches_every_program(veth_pair):
    pair, before = veth_pair(), own_programs()
    with Memory() as memory:
        target = find(memory, resolve(pair.sender.netns), pair.sender.ifindex, "veth")
    engine = Engine(target, bql=False)
    assert len(own_programs() - before) >= 3
    assert set(engine.program_fds()) >= {"snapshot", "on_xmit", "on_poll"}
    engine.close()
    assert own_programs() == before


def test_wakes_are_none_where_nobody_sees_them_happen(lab, engine_on):
    engine = engine_on(lab(rules=0).sender, "veth")
    (queue,) = engine.queues()
    exact = next(probe for probe in engine.probes() if probe.name == "wake").in_force
    assert (queue.wakes_driver, queue.wakes_bql) == ((0, 0) if exact else (None, None))
