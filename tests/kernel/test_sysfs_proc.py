"""Queue files against cat, and what happens to open ones when the device or a queue goes away."""

import os
import resource
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

from bqltop.kernel import netns as namespaces
from bqltop.kernel import proc, sysfs
from bqltop.model import Unit


@pytest.fixture
def sysfs_of():
    opened = []

    def make(name: str) -> int:
        opened.append(namespaces.sysfs_dir(namespaces.resolve(name)))
        return opened[-1]

    yield make
    for fd in opened:
        os.close(fd)


def cat(name: str, path: str) -> int:
    done = subprocess.run(["ip", "netns", "exec", name, "cat", path], check=True, capture_output=True, text=True)
    return int(done.stdout)


def test_an_ifb_has_the_values_cat_shows(ifb, sysfs_of):
    end = ifb(queues=3)
    directory = sysfs_of(end.netns)
    folder = f"/sys/class/net/{end.device}/queues/tx-1/byte_queue_limits"
    for name, value in {"limit_min": 5, "limit_max": 999, "hold_time": 1200}.items():
        subprocess.run(["ip", "netns", "exec", end.netns, "sh", "-c", f"echo {value} > '{folder}/{name}'"], check=True)
    with sysfs.QueueFiles(directory, end.device, sysfs.unit_of("ifb")) as files:
        assert files.count == 3
        assert files.bql
        queues = files.read()
    assert [queue.index for queue in queues] == [0, 1, 2]
    assert (queues[1].limit_min, queues[1].limit_max, queues[1].hold_time_ms) == (5, 999, 1200)
    assert queues[1].unit is Unit.BYTES
    for name, key in {
        "limit": "limit",
        "limit_min": "limit_min",
        "limit_max": "limit_max",
        "hold_time": "hold_time_ms",
        "inflight": "inflight",
        "stall_thrs": "stall_threshold_ms",
        "stall_cnt": "stall_count",
    }.items():
        if os.path.exists(f"/proc/self/fd/{directory}/class/net/{end.device}/queues/tx-0/byte_queue_limits/{name}"):
            assert getattr(queues[1], key) == cat(end.netns, f"{folder}/{name}"), name
    assert queues[2].tx_timeouts == cat(end.netns, f"/sys/class/net/{end.device}/queues/tx-2/tx_timeout") == 0


def test_a_device_without_bql_has_timeouts_only(veth_pair, sysfs_of):
    end = veth_pair(queues=2).sender
    with sysfs.QueueFiles(sysfs_of(end.netns), end.device, Unit.PACKETS) as files:
        queues = files.read()
        assert files.unit is None or files.bql
    assert [queue.tx_timeouts for queue in queues] == [0, 0]
    if not files.bql:
        assert {(queue.unit, queue.limit, queue.inflight) for queue in queues} == {(None, None, None)}


def test_a_device_that_goes_away_leaves_none_and_no_exception(ifb, sysfs_of):
    end = ifb(queues=2)
    with sysfs.QueueFiles(sysfs_of(end.netns), end.device) as files:
        assert files.read()[0].tx_timeouts == 0
        subprocess.run(["ip", "-n", end.netns, "link", "set", end.device, "down"], check=True)
        subprocess.run(["ip", "-n", end.netns, "link", "set", end.device, "name", "renamed"], check=True)
        assert files.read()[0].limit_max is not None, "open files survive a rename"
        subprocess.run(["ip", "-n", end.netns, "link", "del", "renamed"], check=True)
        assert [(queue.limit, queue.tx_timeouts) for queue in files.read()] == [(None, None)] * 2
        assert files.tx_timeouts() == [None, None]


def test_a_queue_taken_away_is_none_and_the_others_stay(veth_pair, sysfs_of):
    end = veth_pair(queues=4).sender
    directory = sysfs_of(end.netns)
    with sysfs.QueueFiles(directory, end.device) as files:
        done = subprocess.run(
            ["ip", "netns", "exec", end.netns, "ethtool", "-L", end.device, "tx", "2"], capture_output=True, check=False
        )
        if done.returncode:
            pytest.skip("this veth cannot change its channels")
        assert files.tx_timeouts() == [0, 0, None, None]
        assert sysfs.tx_queue_count(directory, end.device) == 2


@pytest.mark.parametrize("hostile", ["[red]", "x'y\"z", "é1", "-o"])
def test_hostile_names(netns, sysfs_of, hostile):
    name = netns()
    subprocess.run(["ip", "-n", name, "link", "add", "name", hostile, "type", "bridge"], check=True)
    directory = sysfs_of(name)
    assert sysfs.tx_queue_count(directory, hostile) == 1
    assert sysfs.napi_settings(directory, hostile)["gro_flush_timeout"] == 0
    with sysfs.QueueFiles(directory, hostile) as files:
        assert files.read()[0].tx_timeouts == 0


@pytest.mark.parametrize("nothing", ["nope", "", "..", "a\0b"])
def test_no_such_device_is_nothing_at_all(netns, sysfs_of, nothing):
    directory = sysfs_of(netns())
    assert sysfs.tx_queue_count(directory, nothing) is None
    assert sysfs.tun_flags(directory, nothing) is None
    with sysfs.QueueFiles(directory, nothing) as files:
        assert files.read() == ()


def test_more_queues_than_files_may_be_open_still_reads_them_all(ifb, sysfs_of):
    end = ifb(queues=64)
    directory = sysfs_of(end.netns)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    in_use = len(os.listdir("/proc/self/fd"))
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (in_use + 330, hard))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(resource, "setrlimit", lambda *_: (_ for _ in ()).throw(ValueError("not allowed")))
            with sysfs.QueueFiles(directory, end.device) as files:
                assert len(os.listdir("/proc/self/fd")) < in_use + 330 - 100
                queues = files.read()
                assert len(queues) == 64
                assert all(queue.limit_max is not None and queue.tx_timeouts == 0 for queue in queues)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_the_limit_of_open_files_is_raised_as_far_as_it_goes():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (512, hard))
        assert sysfs.raise_file_limit(1000) >= 1000 or hard < 1500
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] > 512
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_jiffies_are_those_of_this_kernel():
    assert sysfs.HZ in (24, 32, 48, 64, 100, 128, 200, 250, 256, 300, 500, 512, 1000, 1024, 1200)
    assert sysfs.jiffies_to_ms(sysfs.HZ) == 1000


def test_cpus_are_those_of_proc_stat():
    cpus = proc.cpus()
    lines = [line.split() for line in Path("/proc/stat").read_text().splitlines() if line.startswith("cpu") and line[3].isdigit()]
    assert [cpu.cpu for cpu in cpus] == [int(line[0][3:]) for line in lines]
    for cpu, line in zip(cpus, lines, strict=True):
        ticks = os.sysconf("SC_CLK_TCK")
        assert cpu.total_s == pytest.approx(sum(map(int, line[1:9])) / ticks, abs=1)
        assert cpu.softirq_s == pytest.approx(int(line[7]) / ticks, abs=1)


def test_softirqs_of_a_machine_with_a_hole_in_its_cpu_numbers():
    text = (
        b"                    CPU0       CPU2       \n      NET_TX:          3          4\n      NET_RX:         50         60\n"
    )
    assert proc.softirq_counts(text) == ({0: 3, 2: 4}, {0: 50, 2: 60})
    assert proc.softirq_counts(b"") == ({}, {})


def test_lists_of_cpus_as_the_kernel_writes_them():
    assert proc.cpu_numbers("0-3,6,8-9\n") == [0, 1, 2, 3, 6, 8, 9]
    assert proc.cpu_numbers("0\n") == [0]
    assert proc.cpu_numbers("") == []


def test_softirqs_go_to_the_cpu_of_their_number_though_another_one_is_switched_off(monkeypatch):
    files = {proc.ONLINE: b"0,2\n", proc.SOFTIRQS: b"  CPU0 CPU1 CPU2 CPU3\n NET_TX: 1 2 3 4\n NET_RX: 10 20 30 40\n"}
    times = [SimpleNamespace(user=1.0, softirq=0.5), SimpleNamespace(user=2.0, softirq=0.25)]
    monkeypatch.setattr(proc, "_read", files.__getitem__)
    monkeypatch.setattr(proc.psutil, "cpu_times", lambda percpu: times)
    assert [(cpu.cpu, cpu.softirq_s, cpu.net_tx, cpu.net_rx) for cpu in proc.cpus()] == [(0, 0.5, 1, 10), (2, 0.25, 3, 30)]


def test_own_cost_grows_with_work():
    before = proc.own_cost()
    sum(number * number for number in range(300_000))
    after = proc.own_cost(read_ns=5)
    assert after.cpu_s > before.cpu_s
    assert after.rss_bytes > 1_000_000
    assert after.read_ns == 5
