"""Several queues under mq, and fq_codel, sfq and cake at the root: each queue's own numbers, the tree, the extras."""

import pytest

from .devices.shell import link_stats, qdiscs
from .devices.veth import veth_lab
from .watching import attached, json_samples, look

QUEUES = 4


@pytest.fixture(scope="module")
def four():
    """(lab, samples) of a flood of many flows over four queues, the last sample of the silence after it."""
    with veth_lab(queues=QUEUES, qdisc="mq") as lab, attached(lab.sender.device, lab.sender.netns) as sampler:
        lab.start_flood()
        samples = look(sampler, 2)
        lab.stop_flood()
        lab.settle(60)
        yield lab, [*samples, sampler.sample()]


def test_each_queue_counts_its_own_packets(four):
    lab, samples = four
    queues = samples[-1].queues
    assert [queue.index for queue in queues] == list(range(QUEUES))
    assert all(queue.packets > 0 for queue in queues)
    assert sum(queue.packets for queue in queues) == link_stats(lab.sender.device, lab.sender.netns)["tx_packets"]
    assert {queue.ring_size for queue in queues} == {256}


def test_each_queue_has_the_napi_instance_that_empties_it(four):
    _, samples = four
    work = {napi.index: napi.work for napi in samples[-1].napis if napi.role == "peer"}
    assert work == {queue.index: queue.packets for queue in samples[-1].queues}


def test_the_tree_under_mq_is_tcs(four):
    lab, samples = four
    truth = {entry.get("parent", "root"): entry for entry in qdiscs(lab.sender.device, lab.sender.netns)}
    tree = {entry.parent: entry for entry in samples[-1].qdiscs}
    assert set(tree) == set(truth)
    assert tree["root"].kind == "mq"
    for parent, entry in tree.items():
        assert (entry.kind, entry.packets, entry.drops) == (
            truth[parent]["kind"], truth[parent]["packets"], truth[parent]["drops"])  # fmt: skip
    children = {entry.txq: entry for entry in tree.values() if entry.parent != "root"}
    assert set(children) == set(range(QUEUES))
    assert sum(entry.packets for entry in children.values()) == tree["root"].packets


def test_a_childs_packets_are_its_queues(four):
    lab, samples = four
    children = {entry.txq: entry for entry in samples[-1].qdiscs if entry.txq is not None}
    dropped = link_stats(lab.sender.device, lab.sender.netns)["tx_dropped"]
    for queue in samples[-1].queues:
        # what the driver dropped has left the qdisc but was not transmitted
        assert queue.packets <= children[queue.index].packets <= queue.packets + dropped


def test_once_json_with_four_queues(four):
    lab, _ = four
    (sample,) = json_samples(lab.sender.device, "--once", netns=lab.sender.netns)
    assert len(sample["queues"]) == QUEUES
    assert {entry["txq"] for entry in sample["qdiscs"]} == {None, 0, 1, 2, 3}


EXTRAS = {"fq_codel": "new_flow_count", "cake": "memory_used", "sfq": None}


@pytest.mark.parametrize("kind", EXTRAS)
def test_the_root_qdiscs_own_statistics_equal_tcs(kind, request):
    with veth_lab(qdisc=kind) as lab, attached(lab.sender.device, lab.sender.netns, use_bpf=False) as sampler:
        lab.flood(1)
        (truth,) = qdiscs(lab.sender.device, lab.sender.netns)
        (root,) = sampler.sample().qdiscs
        assert (root.kind, root.packets, root.drops, root.requeues) == (
            kind, truth["packets"], truth["drops"], truth["requeues"])  # fmt: skip
        shared = {name: value for name, value in root.extra.items() if name in truth}
        assert shared == {name: truth[name] for name in shared}
        if EXTRAS[kind]:
            assert EXTRAS[kind] in shared
