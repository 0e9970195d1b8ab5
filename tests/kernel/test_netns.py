"""Namespaces: found without creating, entered without moving anybody, and noticed when they are gone."""

import fcntl
import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from bqltop.kernel import netns as namespaces
from bqltop.kernel.netns import NetnsError

SIOCGSKNS = 0x894C  # a descriptor of the socket's own namespace


def inode(path: str) -> int:
    return os.stat(path).st_ino


def test_ours_is_the_current_one_and_has_no_name():
    ours = namespaces.current()
    assert ours.inode == inode("/proc/self/ns/net")
    assert ours.name is None
    assert namespaces.exists(ours)


def test_a_wrong_name_is_one_sentence_that_names_the_others_and_creates_nothing(netns):
    known = netns()
    before = set(os.listdir("/run/netns"))
    with pytest.raises(NetnsError) as caught:
        namespaces.resolve("no-such-namespace")
    assert "no-such-namespace" in str(caught.value)
    assert known in str(caught.value)
    assert "\n" not in str(caught.value)
    assert set(os.listdir("/run/netns")) >= before
    assert "no-such-namespace" not in os.listdir("/run/netns")


@pytest.mark.parametrize(
    "wrong", ["", ".", "..", "/", "/etc/passwd", "/dev/null", "/proc/self/ns/mnt", "/nowhere/at/all", "a\0b", "-h"]
)
def test_what_is_no_namespace_is_refused_in_one_sentence(wrong):
    with pytest.raises(NetnsError) as caught:
        namespaces.resolve(wrong)
    assert "\n" not in str(caught.value)


def test_a_fifo_in_place_of_a_namespace_does_not_hang(tmp_path):
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(NetnsError):
        namespaces.resolve(str(tmp_path / "fifo"))


def test_by_name_and_by_path_is_the_same_namespace(netns):
    name = netns()
    by_name, by_path = namespaces.resolve(name), namespaces.resolve(f"/run/netns/{name}")
    assert by_name.inode == by_path.inode == inode(f"/run/netns/{name}")
    assert by_name.name == name


def test_our_own_namespace_by_its_path_has_no_name():
    assert namespaces.resolve("/proc/self/ns/net").name is None


def test_a_function_runs_inside_while_every_other_thread_stays(netns):
    where = namespaces.resolve(netns())
    seen = namespaces.run_in(where, lambda: inode("/proc/thread-self/ns/net"))
    assert seen == where.inode
    assert inode("/proc/thread-self/ns/net") == namespaces.current().inode
    assert threading.active_count() < 10


def test_what_the_function_raises_arrives(netns):
    where = namespaces.resolve(netns())
    with pytest.raises(ZeroDivisionError):
        namespaces.run_in(where, lambda: 1 / 0)


def test_the_main_thread_refuses_to_move(netns):
    where = namespaces.resolve(netns())
    with pytest.raises(RuntimeError):
        namespaces.enter(where)


def test_a_socket_belongs_to_the_namespace_it_was_asked_for(netns):
    where = namespaces.resolve(netns())
    with namespaces.socket_in(where, socket.AF_INET, socket.SOCK_DGRAM) as sock:
        ns_fd = fcntl.ioctl(sock, SIOCGSKNS)
        try:
            assert os.fstat(ns_fd).st_ino == where.inode
        finally:
            os.close(ns_fd)


def test_the_sysfs_of_another_namespace_shows_its_devices_to_any_thread(netns):
    name = netns()
    subprocess.run(["ip", "-n", name, "link", "add", "bqtdum", "type", "bridge"], check=True)
    directory = namespaces.sysfs_dir(namespaces.resolve(name))
    try:
        net = os.open("class/net", os.O_RDONLY, dir_fd=directory)
        assert sorted(set(os.listdir(net)) - {"bonding_masters"}) == ["bqtdum", "lo"]
        os.close(net)
    finally:
        os.close(directory)
    assert "/tmp/bqltop-sysfs" not in Path("/proc/mounts").read_text()


def test_the_older_way_to_that_sysfs_works_as_well(netns, monkeypatch):
    def refused() -> int:
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr(namespaces, "_sysfs_by_fsmount", refused)
    name = netns()
    mounts = Path("/proc/self/mounts").read_text()
    directory = namespaces.sysfs_dir(namespaces.resolve(name))
    try:
        assert os.path.exists(f"/proc/self/fd/{directory}/class/net/lo")
        assert not os.path.exists(f"/proc/self/fd/{directory}/class/net/eth0")
    finally:
        os.close(directory)
    assert Path("/proc/self/mounts").read_text() == mounts


def test_a_namespace_is_noticed_to_be_gone_though_our_socket_keeps_it_alive(netns):
    name = netns()
    where = namespaces.resolve(name)
    with namespaces.socket_in(where, socket.AF_INET, socket.SOCK_DGRAM):
        assert namespaces.exists(where)
        subprocess.run(["ip", "netns", "del", name], check=True)
        assert not namespaces.exists(where)
        assert namespaces.relocate(where) is None
        subprocess.run(["ip", "netns", "add", name], check=True)
        assert not namespaces.exists(where), "another namespace of the same name is not the same namespace"
        with pytest.raises(NetnsError, match="gone"):
            namespaces.run_in(where, lambda: None)


def test_a_namespace_whose_name_went_is_found_again_through_its_process(netns):
    name = netns()
    where = namespaces.resolve(name)
    child = subprocess.Popen(["ip", "netns", "exec", name, "sleep", "60"])
    try:
        wait_until(lambda: namespaces.of_pid(child.pid).inode == where.inode)
        assert namespaces.of_pid(child.pid).name == name
        subprocess.run(["ip", "netns", "del", name], check=True)
        found = namespaces.relocate(where)
        assert found is not None
        assert found.path == f"/proc/{child.pid}/ns/net"
        assert found.name == name
        assert namespaces.of_pid(child.pid).name == f"pid:{child.pid}"
        subprocess.run(["ip", "netns", "add", name], check=True)
    finally:
        child.kill()
        child.wait()


def test_no_such_process_is_one_sentence():
    with pytest.raises(NetnsError, match="there is no process 4194999"):
        namespaces.of_pid(4194999)


def test_all_visible_names_the_owner_and_finds_the_nameless(netns):
    name = netns()
    code = "import ctypes, sys; ctypes.CDLL(None).unshare(0x40000000); print(flush=True); sys.stdin.read()"
    child = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        child.stdout.readline()
        visible = namespaces.all_visible()
        assert visible[0].namespace == namespaces.current()
        assert name in {entry.namespace.name for entry in visible}
        nameless = next(entry for entry in visible if entry.pid == child.pid)
        assert nameless.namespace.name == f"pid:{child.pid}"
        assert nameless.process.startswith("python")
        inodes = [entry.namespace.inode for entry in visible]
        assert len(inodes) == len(set(inodes))
    finally:
        child.kill()
        child.wait()


def wait_until(holds, seconds: float = 5.0) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it never came true"
        time.sleep(0.01)
