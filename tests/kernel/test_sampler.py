"""The sampler while things happen to the device."""

from __future__ import annotations

import itertools
import threading
import time

import pytest
from leftovers import own_programs
from looking import said_by, send_udp, wait_until

from bqltop.kernel.netns import NetnsError
from bqltop.kernel.rtnl import Rtnl
from bqltop.presence import NoSuchDevice
from bqltop.sampler import Sampler
from bqltop.window import between

pytestmark = pytest.mark.usefixtures("require_root")


@pytest.fixture
def pair_and_sampler(veth_pair, factory):
    pair = veth_pair()
    return pair, factory.enter(lambda: Sampler("veth0", pair.sender.netns))


def delete(pair) -> None:
    said_by("ip", "-n", pair.sender.netns, "link", "del", "veth0")


def create(pair) -> None:
    """The pair again, as it was but for its index."""
    here, there = pair.sender.netns, pair.receiver.netns
    said_by("ip", "-n", here, "link", "add", "veth0", "type", "veth", "peer", "name", "veth1", "netns", there)
    for netns, device in ((here, "veth0"), (there, "veth1")):
        said_by("ip", "-n", netns, "link", "set", device, "up")
    said_by("ip", "-n", here, "addr", "add", "198.18.0.1/24", "dev", "veth0")
    said_by("ip", "-n", here, "neigh", "replace", "198.18.0.3", "lladdr", "02:00:00:00:00:03", "dev", "veth0", "nud", "permanent")


def test_a_deleted_device_is_absent_with_what_was_seen_last(pair_and_sampler):
    pair, sampler = pair_and_sampler
    sampler.sample()
    send_udp(pair.sender, 4)
    seen = sampler.sample()
    assert (seen.present, seen.queues[0].packets) == (True, 4)
    delete(pair)
    gone = sampler.sample()
    assert (gone.present, gone.queues, gone.device.name) == (False, seen.queues, "veth0")
    assert between(seen, gone) is None
    for _ in range(3):
        assert sampler.sample().present is False


def test_a_device_made_again_under_its_name_is_another_attachment(pair_and_sampler):
    pair, sampler = pair_and_sampler
    first = sampler.sample()
    send_udp(pair.sender, 4)
    before = sampler.sample()
    delete(pair)
    away = sampler.sample()
    create(pair)
    back = sampler.sample()
    assert (back.present, back.epoch > first.epoch, back.device.ifindex != first.device.ifindex) == (True, True, True)
    assert back.queues[0].packets == 0
    assert between(before, back) is None
    assert between(away, back) is None
    send_udp(pair.sender, 2)
    later = sampler.sample()
    assert later.queues[0].packets == 2
    assert between(back, later).queues[0].packets_per_s > 0


def test_a_device_replaced_between_two_looks_is_noticed(pair_and_sampler):
    pair, sampler = pair_and_sampler
    before = sampler.sample()
    send_udp(pair.sender, 4)
    delete(pair)
    create(pair)
    samples = [sampler.sample() for _ in range(3)]
    assert samples[-1].present
    assert samples[-1].epoch > before.epoch
    send_udp(pair.sender, 3)
    assert sampler.sample().queues[0].packets == 3


def test_the_iteration_goes_on_while_the_device_is_away(pair_and_sampler):
    pair, sampler = pair_and_sampler
    samples = sampler.every(0.05)
    present = [sample.present for sample in itertools.islice(samples, 2)]
    delete(pair)
    present += [sample.present for sample in itertools.islice(samples, 3)]
    create(pair)
    assert wait_until(lambda: next(samples).present)
    assert present[:2] == [True, True]
    assert present[-1] is False


def test_another_number_of_queues_is_another_attachment(veth_pair, factory):
    pair = veth_pair(queues=4)
    sampler = factory.enter(lambda: Sampler("veth0", pair.sender.netns))
    before = sampler.sample()
    assert len(before.queues) == 4
    said_by("ip", "netns", "exec", pair.sender.netns, "ethtool", "-L", "veth0", "tx", "2", "rx", "2")
    assert wait_until(lambda: len(sampler.sample().queues) == 2)
    after = sampler.sample()
    assert after.epoch > before.epoch
    said_by("ip", "netns", "exec", pair.sender.netns, "ethtool", "-L", "veth0", "tx", "4", "rx", "4")
    assert wait_until(lambda: len(sampler.sample().queues) == 4)


def test_a_sample_that_the_kernel_does_not_answer_for_is_a_missed_one(pair_and_sampler, monkeypatch):
    _, sampler = pair_and_sampler
    answers = iter((None, TimeoutError("timed out"), None))
    link_stats = Rtnl.link_stats

    def late(rtnl, ifindex):
        answer = next(answers)
        if answer:
            raise answer
        return link_stats(rtnl, ifindex)

    monkeypatch.setattr(Rtnl, "link_stats", late)
    first, second = itertools.islice(sampler.every(0.02), 2)
    assert (first.own.missed, second.own.missed) == (0, 1)
    assert (first.present, second.present, second.epoch) == (True, True, first.epoch)


def test_closing_from_another_thread_ends_the_iteration(pair_and_sampler):
    _, sampler = pair_and_sampler
    threading.Timer(0.2, sampler.close).start()
    started = time.monotonic()
    assert len(list(sampler.every(5.0))) >= 1
    assert time.monotonic() - started < 4


def test_leaving_the_with_unloads_everything(veth_pair):
    pair, before = veth_pair(), own_programs()
    with Sampler("veth0", pair.sender.netns) as sampler:
        sampler.sample()
        assert own_programs() != before
    assert own_programs() == before


def test_an_unknown_device_names_those_that_are(veth_pair):
    pair = veth_pair()
    with pytest.raises(NoSuchDevice, match=r'no device "eth7".*lo, .*veth0'):
        Sampler("eth7", pair.sender.netns)


def test_an_unknown_namespace_is_told_and_not_made():
    from leftovers import namespaces

    with pytest.raises(NetnsError, match="no-such-namespace"):
        Sampler("lo", "no-such-namespace")
    assert "no-such-namespace" not in namespaces("no-such")


def test_by_index_is_the_same_device_as_by_name(veth_pair, factory):
    pair = veth_pair()
    sampler = factory.enter(lambda: Sampler(pair.sender.ifindex, pair.sender.netns))
    assert sampler.sample().device.name == "veth0"


def test_lo_has_no_queue_to_stop_yet_is_shown(factory):
    sampler = factory.enter(lambda: Sampler("lo"))
    sample = sampler.sample()
    assert (sample.device.name, len(sample.queues), sample.queues[0].unit) == ("lo", 1, None)
