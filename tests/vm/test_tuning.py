"""Tuning what only other kernels have: BQL and tx-usecs of veth, BQL of usbnet, the rings of a card, real qdiscs."""

import re
import subprocess
from pathlib import Path

import pytest

from bqltop.kernel import netns
from bqltop.tuning.journal import NoJournal
from bqltop.tuning.tuner import Tuner

from .devices import usbnet
from .devices.shell import load_modules, namespace, read_bql, sh
from .devices.veth import veth_lab
from .watching import attached, look


def tuner_of(device: str, namespace: str | None = None) -> Tuner:
    return Tuner(device, netns.resolve(namespace) if namespace else None, NoJournal())


def turn(tuner: Tuner, knob: str, value: object):
    """The change, which must not have been refused."""
    (plan,) = tuner.plan({knob: str(value)})
    change = tuner.apply(plan)
    assert not change.refused, change.sentence
    return change


def run(command: str) -> None:
    """A plan's command, as a person would run it."""
    subprocess.run(["sh", "-c", command], check=True)


def without_handle(text: str) -> str:
    return re.sub(r" [78]\w+:", " 8:", text)


@pytest.fixture(scope="module")
def card():
    """Name of a network card that a driver for real hardware runs."""
    load_modules("e1000e")
    for folder in Path("/sys/class/net").iterdir():
        driver = folder / "device/driver"
        if driver.exists() and driver.resolve().name == "e1000e":
            return folder.name
    pytest.skip("this machine has no card with rings, or the kernel no driver for it")


def shown(device: str, option: str, word: str, ns: str | None = None) -> list[str]:
    """Values of a word in ethtool's output, in order."""
    return re.findall(rf"^{word}:\s*(\S+)$", sh(f"ethtool {option} {device}", ns), re.MULTILINE)


def test_rings_of_a_card_are_set_rounded_and_set_back(card):
    with tuner_of(card) as tuner:
        before = tuner.setting("ring-tx")
        assert [str(before.high), str(before.value)] == shown(card, "-g", "TX")
        (plan,) = tuner.plan({"ring-tx": "1024"})
        assert "reset the link" in plan.cuts_traffic
        assert tuner.apply(plan).kept == (1024,)
        assert shown(card, "-g", "TX")[1] == "1024"
        rounded = turn(tuner, "ring-rx", 1001)
        assert rounded.note == f"asked 1001, kernel keeps {rounded.kept[0]}"
        assert shown(card, "-g", "RX")[1] == str(rounded.kept[0])
        assert not any(back.refused for back in tuner.undo_all())
        assert shown(card, "-g", "TX")[1] == str(before.value)


def test_coalescing_of_a_card(card):
    with tuner_of(card) as tuner:
        before = shown(card, "-c", "rx-usecs")
        turn(tuner, "rx-usecs", 40)
        assert shown(card, "-c", "rx-usecs") == ["40"]
        assert tuner.setting("tx-usecs").why_not
        tuner.undo()
        assert shown(card, "-c", "rx-usecs") == before


@pytest.mark.kernel(needs="veth_bql")
def test_veth_bql_limit_min_is_pending_until_something_completes():
    with veth_lab() as lab, tuner_of(lab.sender.device, lab.sender.netns) as tuner:
        turn(tuner, "tx-usecs", 0)
        lab.flood(0.3)
        change = turn(tuner, "limit_min", 200)
        assert change.plan.warnings == ()
        assert tuner.setting("limit_min").unit == "packets"
        assert change.pending
        lab.flood(0.5)
        assert read_bql(lab.sender.device, netns=lab.sender.netns)["limit"] >= 200
        tuner.undo()
        assert read_bql(lab.sender.device, netns=lab.sender.netns)["limit_min"] == 0


@pytest.mark.kernel(needs="veth_bql")
def test_veth_bql_tx_usecs_is_what_ethtool_shows_at_both_ends_and_steers_the_limit():
    with veth_lab(qdisc="fq_codel") as lab, tuner_of(lab.sender.device, lab.sender.netns) as tuner:
        before = shown(lab.sender.device, "-c", "tx-usecs", lab.sender.netns)
        limits = []
        for usecs in (0, 1000):
            turn(tuner, "tx-usecs", usecs)
            for end in (lab.sender, lab.receiver):
                assert shown(end.device, "-c", "tx-usecs", end.netns) == [str(usecs)]
            with attached(lab.sender.device, lab.sender.netns) as sampler:
                lab.start_flood()
                limits.append(look(sampler, 2)[-1].queues[0].limit)
                lab.stop_flood()
                lab.settle(60)
        assert limits[0] < limits[1]
        tuner.undo_all()
        assert shown(lab.sender.device, "-c", "tx-usecs", lab.sender.netns) == before


@pytest.mark.kernel(needs="usbnet_bql")
def test_usbnet_counts_bytes():
    with usbnet.usb_pair() as pair, tuner_of(pair.device) as tuner:
        assert tuner.setting("limit_min").unit == "bytes"
        (plan,) = tuner.plan({"limit_min": "8"})
        assert "less than one packet" in plan.warnings[0]
        assert turn(tuner, "limit_min", 3000).kept == (3000,)
        assert read_bql(pair.device)["limit_min"] == 3000
        tuner.undo()
        assert read_bql(pair.device)["limit_min"] == 0


@pytest.mark.parametrize(
    ("kind", "words", "parameter", "value"),
    [("fq_codel", "limit 500 target 4ms flows 64", "limit", 300), ("fq_codel", "", "target", 2000),
     ("codel", "limit 400", "interval", 50000), ("fq", "limit 2000", "flow_limit", 20), ("pie", "limit 300", "target", 9000),
     ("sfq", "perturb 10", "limit", 60), ("pfifo", "limit 70", "limit", 60)],
)  # fmt: skip
def test_qdiscs_are_set_changed_in_place_and_put_back_as_tc_shows_them(kind, words, parameter, value):
    load_modules("dummy", f"sch_{kind}")
    with namespace("tuned"):
        sh("ip -n tuned link add d0 type dummy")
        sh("ip -n tuned link set d0 up")
        show = "tc -n tuned qdisc show dev d0 root"
        with tuner_of("d0", "tuned") as tuner:
            before = sh(show)
            first = turn(tuner, "qdisc", f"{kind} {words}")
            as_set = sh(show)
            assert as_set.split()[1] == kind
            changed = turn(tuner, f"qdisc-{parameter}", value)
            # codel keeps its times in units of 1024 ns
            assert changed.kept[0] in (value, value - 1)
            assert changed.note == (None if changed.kept[0] == value else f"asked {value}, kernel keeps {value - 1}")
            after = sh(show)
            changed_by = changed.plan.command
            turn(tuner, "qdisc", "bfifo limit 9000")
            tuner.undo()
            tuner.undo()
            assert sh(show) == as_set
            back = tuner.undo()
            assert sh(show) == before
            run(first.plan.command)
            assert without_handle(sh(show)) == without_handle(as_set)
            run(changed_by)
            assert without_handle(sh(show)) == without_handle(after)
            run(back.plan.command)
            assert sh(show) == before


def test_an_automatic_mq_comes_back():
    with veth_lab(queues=4) as lab, tuner_of(lab.sender.device, lab.sender.netns) as tuner:
        sh(f"tc qdisc del dev {lab.sender.device} root", lab.sender.netns)
        before = sh(f"tc qdisc show dev {lab.sender.device}", lab.sender.netns)
        turn(tuner, "qdisc", "mq")
        assert "mq" in sh(f"tc qdisc show dev {lab.sender.device}", lab.sender.netns)
        turn(tuner, "qdisc", "fq_codel")
        tuner.undo()
        tuner.undo()
        assert sh(f"tc qdisc show dev {lab.sender.device}", lab.sender.netns) == before
