"""The lab on the real kernel, checked against `tc -s`, `ip -s` and sysfs rather than against itself."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from leftovers import PREFIX, marked_processes, namespaces

from bqltop.lab import LabError, LabUnavailable, in_netns
from bqltop.lab.scope import PREFIX_VARIABLE

pytestmark = pytest.mark.usefixtures("require_root")


def tool(*argv: str):
    """What an iproute2 command says with -j."""
    return json.loads(subprocess.run(argv, capture_output=True, text=True, check=True).stdout)


def qdiscs(end) -> list[dict]:
    return tool("tc", "-n", end.netns, "-s", "-j", "qdisc", "show", "dev", end.device)


def root_qdisc(end) -> dict:
    return next(qdisc for qdisc in qdiscs(end) if qdisc.get("root"))


def counters(end) -> dict:
    return tool("ip", "-n", end.netns, "-s", "-j", "link", "show", "dev", end.device)[0]["stats64"]


def in_namespace(end, *argv: str) -> str:
    return subprocess.run(["ip", "netns", "exec", end.netns, *argv], capture_output=True, text=True, check=True).stdout


def wait_until(condition, seconds: float = 5) -> bool:
    """Whether `condition()` came true in time."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.02)
    return False


def test_before_the_flood_there_is_not_one_packet(lab):
    built = lab(queues=2)
    time.sleep(0.3)  # router solicitations and multicast reports would come in this time
    for end in (built.sender, built.receiver):
        stats = counters(end)
        assert (stats["tx"]["packets"], stats["rx"]["packets"]) == (0, 0)


@pytest.mark.parametrize(
    "words",
    [{}, {"queues": 4}, {"flooders": 2, "packet_size": 64}, {"rules": 0}, {"burst": 500, "pause_ms": 5}, {"threaded": False}],
    ids=lambda words: " ".join(f"{name}={value}" for name, value in words.items()) or "default",
)
def test_the_flood_counts_exactly_what_the_qdisc_saw(lab, words):
    built = lab(**words)
    result = built.flood(0.5)
    qdisc = root_qdisc(built.sender)
    assert result.sent == qdisc["packets"] + qdisc["drops"] + qdisc["qlen"]
    assert result.errors == 0
    assert result.sent > 100
    # Nothing was lost on the way, and the receiver answered nothing.
    assert counters(built.sender)["tx"]["packets"] == qdisc["packets"]
    assert counters(built.receiver)["rx"]["packets"] == qdisc["packets"]
    assert counters(built.receiver)["tx"]["packets"] == 0
    assert counters(built.sender)["rx"]["packets"] == 0


def test_packets_have_the_asked_size(lab):
    built = lab(packet_size=300, rules=0)
    built.flood(0.1)
    qdisc = root_qdisc(built.sender)
    assert qdisc["bytes"] == qdisc["packets"] * (300 + 8 + 20 + 14)  # UDP, IPv4, Ethernet


def test_the_default_lab_fills_the_ring(lab):
    """A full ring shows from outside as requeues (the driver's busy) and as a backlog that never goes away."""
    built = lab()
    built.start_flood()
    time.sleep(0.3)
    before = root_qdisc(built.sender)
    looks = []
    for _ in range(50):
        time.sleep(0.02)
        looks.append(root_qdisc(built.sender)["qlen"])
    after = root_qdisc(built.sender)
    result = built.stop_flood()
    taken = after["packets"] - before["packets"]
    assert sum(look > 0 for look in looks) >= 45
    if after["requeues"] == before["requeues"]:
        pytest.skip("this kernel's veth drops when its ring is full instead of stopping the queue")
    # One stop (and one requeue) for about 64 packets, NAPI's budget.
    assert after["requeues"] - before["requeues"] > taken / 256
    assert result.pps * 0.8 > taken / 1.0  # the consumer is the slower one


def test_more_rules_make_the_consumer_slower(lab):
    built = lab(rules=0)
    packets = []
    for rules in (0, 20000):
        built.set_rules(rules)
        before = counters(built.receiver)["rx"]["packets"]
        built.flood(0.5)
        packets.append(counters(built.receiver)["rx"]["packets"] - before)
    assert packets[1] < packets[0] / 3


def test_as_many_rules_as_asked_are_in_force(lab):
    built = lab(rules=7)
    shown = in_namespace(built.receiver, "iptables-legacy", "-t", "raw", "-S", "PREROUTING")
    assert shown.count("-A PREROUTING") == 7
    built.set_rules(3)
    shown = in_namespace(built.receiver, "iptables-legacy", "-t", "raw", "-S", "PREROUTING")
    assert shown.count("-A PREROUTING") == 3


def test_several_queues_all_get_packets(lab):
    built = lab(queues=4, qdisc="mq", rules=0)
    built.flood(0.3)
    leaves = [qdisc for qdisc in qdiscs(built.sender) if not qdisc.get("root")]
    assert len(leaves) == 4
    assert all(leaf["packets"] > 0 for leaf in leaves)


def test_queues_and_modes_are_as_asked(lab):
    built = lab(queues=3)
    for end in (built.sender, built.receiver):
        queues = in_namespace(end, "ls", f"/sys/class/net/{end.device}/queues").split()
        assert sum(name.startswith("tx-") for name in queues) == 3
        assert sum(name.startswith("rx-") for name in queues) == 3
    assert in_namespace(built.receiver, "cat", f"/sys/class/net/{built.receiver.device}/threaded").strip() == "1"
    assert "tcp-segmentation-offload: off" in in_namespace(built.sender, "ethtool", "-k", built.sender.device)
    assert "generic-receive-offload: on" in in_namespace(built.receiver, "ethtool", "-k", built.receiver.device)


def test_without_napi_mode_there_is_no_backpressure(lab):
    built = lab(napi_mode=False)
    built.flood(0.3)
    assert root_qdisc(built.sender)["requeues"] == 0
    assert "generic-receive-offload: off" in in_namespace(built.receiver, "ethtool", "-k", built.receiver.device)


def test_a_rate_limited_flood_keeps_its_rate(lab):
    built = lab(pps=5000, rules=0)
    result = built.flood(1.0)
    assert result.sent == pytest.approx(5000, rel=0.1)


def test_the_ends_answer_a_ping(lab):
    built = lab(rules=0)
    in_namespace(built.sender, "ping", "-c", "2", "-i", "0.1", "-W", "1", built.receiver.address)


@pytest.mark.parametrize(
    "qdisc",
    ["pfifo limit 100", "noqueue", "tbf rate 100mbit burst 32k limit 100k", "fq_codel", "sfq",
     "handle 1: htb default 10; class add dev {dev} parent 1: classid 1:10 htb rate 100mbit"],
)  # fmt: skip
def test_the_qdisc_is_the_one_asked_for(lab, qdisc):
    built = lab(qdisc=qdisc)
    kind = "htb" if "htb" in qdisc else qdisc.split()[0]
    if kind == "noqueue":  # it is not listed by `tc`, where it is the default of a device without a queue
        assert tool("ip", "-n", built.sender.netns, "-j", "link", "show", built.sender.device)[0]["qdisc"] == "noqueue"
    else:
        assert root_qdisc(built.sender)["kind"] == kind


def test_several_labs_live_side_by_side(lab):
    one, other = lab(rules=0), lab(rules=0)
    assert one.sender.netns != other.sender.netns
    one.start_flood()
    other.flood(0.1)
    assert one.flooding
    assert root_qdisc(one.sender)["packets"] > 0
    one.stop_flood()


def test_the_description_builds_the_same(lab, netns):
    """Run as a shell script, with other names of namespaces, it makes a pair with the same features, queues and rules."""
    built = lab(queues=2, rules=5)
    lines = built.description()
    assert lines[-1].startswith("# flood: 1 process(es), sendmmsg, UDP 1000 bytes")
    script = "\n".join(lines).replace(built.sender.netns, f"{PREFIX}-copy-tx").replace(built.receiver.netns, f"{PREFIX}-copy-rx")
    try:
        subprocess.run(["bash", "-e", "-c", script], check=True, capture_output=True, text=True)
        shown = subprocess.run(
            ["ip", "netns", "exec", f"{PREFIX}-copy-rx", "iptables-legacy", "-t", "raw", "-S", "PREROUTING"],
            capture_output=True, text=True, check=True,
        ).stdout  # fmt: skip
        assert shown.count("-A PREROUTING") == 5
        assert tool("tc", "-n", f"{PREFIX}-copy-tx", "-j", "qdisc", "show", "dev", "veth0")[0]["kind"] == "pfifo"
    finally:
        for role in ("tx", "rx"):
            subprocess.run(["ip", "netns", "del", f"{PREFIX}-copy-{role}"], check=False, capture_output=True)


def test_an_unknown_qdisc_is_one_sentence_and_leaves_nothing(lab):
    before = namespaces()
    from bqltop.lab import Lab, LabSpec

    with pytest.raises(LabUnavailable, match="This kernel has no qdisc nonesuch"), Lab(LabSpec(qdisc="nonesuch")):
        pass
    assert namespaces() == before
    assert not marked_processes()


def test_flooding_twice_or_stopping_nothing_is_refused(lab):
    built = lab(rules=0)
    with pytest.raises(LabError, match="no flood to stop"):
        built.stop_flood()
    built.start_flood(5)
    with pytest.raises(LabError, match="running already"):
        built.start_flood()
    built.stop_flood()


def test_a_flood_of_given_length_ends_by_itself(lab):
    built = lab(rules=0)
    built.start_flood(0.2)
    assert wait_until(lambda: not built.flooding)
    assert built.stop_flood().seconds == pytest.approx(0.2, abs=0.1)


def test_a_dead_flood_process_is_reported(lab):
    built = lab(rules=0)
    built.start_flood()
    pid = next(pid for pid, command in marked_processes().items() if "flood.py" in command)
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(LabError, match="ended early"):
        built.stop_flood()


OWNER = """
import sys, time
from bqltop.lab import Lab, LabSpec
lab = Lab(LabSpec(prefix=sys.argv[1])).__enter__()
lab.start_flood()
if "fork" in sys.argv:
    import os
    if os.fork() == 0:
        time.sleep(20)  # keeps every pipe of its parent open
print("up", flush=True)
if "raise" in sys.argv:
    raise RuntimeError("on purpose")
if "exit" in sys.argv:
    sys.exit(0)
time.sleep(60)
"""


def own_a_lab(mark: str, *words: str) -> subprocess.Popen:
    """A process in a session of its own that has built a lab and floods it."""
    process = subprocess.Popen(
        [sys.executable, "-c", OWNER, mark, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, PREFIX_VARIABLE: mark},
        start_new_session=True,
    )
    assert process.stdout.readline() == "up\n"
    return process


def end_quietly(mark: str) -> None:
    """Ends what a test of ours has started under this mark and did not end."""
    for pid in marked_processes(mark):
        os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT], ids=lambda number: number.name)
def test_a_killed_owner_leaves_nothing(number):
    mark = f"{PREFIX}k{number}"
    process = own_a_lab(mark)
    try:
        assert len(namespaces(mark)) == 2
        assert len(marked_processes(mark)) == 3  # the owner, its guardian, its flood
        process.send_signal(number)
        process.wait(timeout=5)
        assert wait_until(lambda: not namespaces(mark) and not marked_processes(mark)), (namespaces(mark), marked_processes(mark))
    finally:
        end_quietly(mark)
        process.stdout.close()


def test_a_killed_owner_with_a_forked_child_leaves_nothing_but_the_child():
    """The child holds the guardian's pipe open; that the owner is gone has to be enough."""
    mark = f"{PREFIX}f"
    process = own_a_lab(mark, "fork")
    try:
        process.kill()
        process.wait(timeout=5)
        assert wait_until(lambda: not namespaces(mark))
        assert wait_until(lambda: len(marked_processes(mark)) == 1), marked_processes(mark)
    finally:
        end_quietly(mark)
        process.stdout.close()


@pytest.mark.parametrize("way", ["raise", "exit"])
def test_an_owner_that_ends_without_closing_leaves_nothing(way):
    mark = f"{PREFIX}{way}"
    process = own_a_lab(mark, way)
    process.wait(timeout=5)
    process.stdout.close()
    assert wait_until(lambda: not namespaces(mark) and not marked_processes(mark)), (namespaces(mark), marked_processes(mark))


def test_a_terminated_guardian_removes_the_lab(lab):
    """SIGTERM to all processes of a host that shuts down reaches the guardian too."""
    built = lab(rules=0)
    built.start_flood()
    pid = next(pid for pid, command in marked_processes().items() if "guardian.py" in command)
    os.kill(pid, signal.SIGTERM)
    assert wait_until(lambda: built.sender.netns not in namespaces())
    assert wait_until(lambda: not built.flooding)


def test_after_close_the_devices_are_gone_and_not_only_the_names(lab):
    """A namespace lives on as long as somebody holds it; the pair must not."""
    built = lab(rules=0)
    fd = os.open(f"/run/netns/{built.sender.netns}", os.O_RDONLY)
    try:
        built.close()
        assert not namespaces()
        command = ["nsenter", f"--net=/proc/{os.getpid()}/fd/{fd}", "ip", "-o", "link"]
        shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        assert "veth" not in shown
    finally:
        os.close(fd)


def test_single_devices_have_the_asked_queues(ifb, tun):
    for end in (ifb(queues=4), tun(queues=2)):
        queues = in_namespace(end, "ls", f"/sys/class/net/{end.device}/queues").split()
        assert sum(name.startswith("tx-") for name in queues) == (4 if end.device.startswith("ifb") else 2)
        index = Path(in_namespace(end, "sh", "-c", f"echo /sys/class/net/{end.device}/ifindex").strip())
        assert int(in_namespace(end, "cat", str(index))) == end.ifindex


def test_a_dummy_device_is_up(dummy):
    end = dummy(queues=2)
    assert "UP" in tool("ip", "-n", end.netns, "-j", "link", "show", end.device)[0]["flags"]


def test_packets_sent_to_a_tun_wait_for_its_reader(tun):
    end = tun()
    subprocess.run(
        ["ip", "netns", "exec", end.netns, "ping", "-c", "1", "-W", "0.1", "198.18.0.9"], check=False, capture_output=True
    )
    packet = os.read(end.fds[0], 2048)
    assert packet[9] == 1  # IPPROTO_ICMP
    assert packet[16:20] == bytes([198, 18, 0, 9])


def test_in_netns_leaves_the_calling_thread_where_it_is(netns):
    here = os.readlink("/proc/thread-self/ns/net")
    there = in_netns(netns(), os.readlink, "/proc/thread-self/ns/net")
    assert there != here == os.readlink("/proc/thread-self/ns/net")
    with pytest.raises(ZeroDivisionError):
        in_netns(netns(), lambda: 1 / 0)


def test_a_fresh_namespace_is_empty(netns):
    assert [link["ifname"] for link in tool("ip", "-n", netns(), "-j", "link")] == ["lo"]
