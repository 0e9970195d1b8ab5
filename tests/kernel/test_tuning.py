"""Knobs on real devices: BQL files of ifb, coalescing of tun, and all that veth has."""

import contextlib
import errno
import os
import subprocess
import sys
import threading
import time

import pytest

from bqltop.kernel import netns as namespaces
from bqltop.kernel.sysfs import HZ
from bqltop.model import Namespace
from bqltop.sampler import Sampler
from bqltop.tuning.journal import Journal, NoJournal
from bqltop.tuning.tuner import Tuner

pytestmark = pytest.mark.usefixtures("require_root")
BQL = "/sys/class/net/{}/queues/tx-{}/byte_queue_limits/{}"


@pytest.fixture
def journal(tmp_path):
    return Journal(str(tmp_path / "state"))


@pytest.fixture
def tuner_of(journal):
    """``tuner_of(end, ...)``: a tuner that is closed afterwards."""
    with contextlib.ExitStack() as stack:
        yield lambda end, device=None, **words: stack.enter_context(
            Tuner(device or end.device, namespaces.resolve(end.netns), words.pop("journal", journal), **words)
        )


def shell(end, command):
    """Standard output of a command in the device's namespace."""
    run = subprocess.run(["ip", "netns", "exec", end.netns, "sh", "-c", command], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return run.stdout.strip()


def set_one(tuner, id, value, queue=None, trial=None):
    (plan,) = tuner.plan({id: str(value)}, queue)
    return tuner.apply(plan, trial)


def by_shell(command):
    """Run a plan's command as a person would: in a shell outside of every namespace of ours."""
    run = subprocess.run(["sh", "-c", command], capture_output=True, text=True)
    assert run.returncode == 0, (command, run.stderr)


# BQL


@pytest.mark.parametrize(
    ("id", "asked", "kept", "before"),
    [("limit_min", 8, 8, "0"), ("limit_min", "max", 1879048192, "0"), ("limit_max", 4, 4, "1879048192"),
     ("hold_time", 500, 500, "1000"), ("stall_thrs", 64, 64, "0")],
)  # fmt: skip
def test_bql_is_written_read_back_and_taken_back(ifb, tuner_of, id, asked, kept, before):
    end = ifb(queues=2)
    tuner = tuner_of(end)
    change = set_one(tuner, id, asked, queue=1)
    assert (change.text, change.kept) == (None, (kept,))
    assert shell(end, f"cat {BQL.format(end.device, 1, id)}") == str(kept)
    assert shell(end, f"cat {BQL.format(end.device, 0, id)}") == before
    tuner.undo()
    assert shell(end, f"cat {BQL.format(end.device, 1, id)}") == before


def test_every_queue_at_once(ifb, tuner_of):
    end = ifb(queues=3)
    tuner = tuner_of(end)
    assert set_one(tuner, "limit_min", 9).kept == (9, 9, 9)
    assert shell(end, f"cat {BQL.format(end.device, '*', 'limit_min')}").split() == ["9"] * 3
    assert tuner.setting("limit_min").text == "9"
    set_one(tuner, "limit_min", 4, queue=2)
    assert tuner.setting("limit_min").text == "4..9"
    tuner.undo_all()
    assert shell(end, f"cat {BQL.format(end.device, '*', 'limit_min')}").split() == ["0"] * 3


def test_the_kernel_rounds_and_a_limit_on_an_idle_queue_is_pending(ifb, tuner_of):
    tuner = tuner_of(ifb())
    jiffy = 1000 // HZ
    kept = -(-7 // jiffy) * jiffy
    change = set_one(tuner, "hold_time", 7)
    assert change.kept == (kept,)
    assert change.note == (f"asked 7, kernel keeps {kept}" if kept != 7 else None)
    assert set_one(tuner, "limit_min", 8).note == "pending until the next completion"


@pytest.mark.parametrize("id", ["limit_min", "limit_max", "hold_time", "stall_thrs"])
def test_the_bounds_are_the_kernels(ifb, tuner_of, id):
    """What the knob allows at its ends the kernel takes; what it refuses just outside, the kernel refuses too."""
    end = ifb()
    setting = tuner_of(end).setting(id)
    path = BQL.format(end.device, 0, id)
    for value in (setting.low, setting.high):
        shell(end, f"echo {value} > {path}")
    outside = {"hold_time": [-1], "stall_thrs": [setting.low - 1000 // HZ, setting.high + 1]}.get(id, [-1, setting.high + 1])
    for value in outside:
        run = subprocess.run(["ip", "netns", "exec", end.netns, "sh", "-c", f"echo {value} > {path}"], capture_output=True)
        assert run.returncode != 0, value


def test_limit_min_above_limit_max_is_warned_of(ifb, tuner_of):
    tuner = tuner_of(ifb())
    set_one(tuner, "limit_max", 100)
    (plan,) = tuner.plan({"limit_min": "200"})
    assert "above limit_max 100" in plan.warnings[0]
    assert tuner.apply(plan).kept == (200,)


# ethtool, link, offloads, qdisc


def test_coalescing_of_tun(tun, tuner_of):
    end = tun()
    tuner = tuner_of(end)
    change = set_one(tuner, "rx-frames", 9)
    assert change.kept == (9,)
    assert "9" in shell(end, f"ethtool -c {end.device} | grep rx-frames:")
    absent = set_one(tuner, "tx-usecs", 5)
    assert absent.text == "the driver does not have it"
    tuner.undo()
    assert tuner.setting("rx-frames").value == 0


def test_the_ring_of_a_tun_is_its_queue_length(tun, tuner_of):
    end = tun()
    tuner = tuner_of(end)
    assert set_one(tuner, "txqueuelen", 77).kept == (77,)
    assert shell(end, f"cat /sys/class/net/{end.device}/tx_queue_len") == "77"
    tuner.undo()
    assert shell(end, f"cat /sys/class/net/{end.device}/tx_queue_len") == "500"


@pytest.mark.parametrize(
    ("id", "value", "show"),
    [
        ("channels-tx", 1, "ethtool -l {s} | tail -6 | grep ^TX"),
        ("txqueuelen", 55, "cat /sys/class/net/{s}/tx_queue_len"),
        ("tso", "on", "ethtool -k {s} | grep tx-tcp"),
        ("gro", "on", "ethtool -k {s} | grep generic-receive"),
        ("gro_flush_timeout", 20000, "cat /sys/class/net/{s}/gro_flush_timeout"),
        ("napi_defer_hard_irqs", 3, "cat /sys/class/net/{s}/napi_defer_hard_irqs"),
        ("qdisc", "pfifo limit 33", "tc qdisc show dev {s} root"),
        ("qdisc", "pfifo_fast", "tc qdisc show dev {s} root"),
    ],
)  # fmt: skip
def test_veth_is_changed_taken_back_and_the_shell_command_does_the_same(veth_pair, tuner_of, id, value, show):
    end = veth_pair(queues=2).sender
    tuner = tuner_of(end)
    look = f"{show.format(s=end.device)} | sed 's/refcnt [0-9]*//; s/ 8[0-9a-f]*:/ 8000:/'"
    before = shell(end, look)
    (plan,) = tuner.plan({id: str(value)})
    change = tuner.apply(plan)
    assert change.text is None, change.text
    after = shell(end, look)
    assert after != before
    back = tuner.undo()
    assert shell(end, look) == before
    by_shell(plan.command)
    assert shell(end, look) == after
    by_shell(back.plan.command)
    assert shell(end, look) == before


def test_the_peer_in_its_own_namespace_is_reached(veth_pair, tuner_of):
    pair = veth_pair(napi_mode=False)
    tuner = tuner_of(pair.sender)
    before = shell(pair.receiver, f"ethtool -k {pair.receiver.device} | grep generic-receive")
    for plan in tuner.plan({"tso": "off", "peer-gro": "on", "peer-napi_defer_hard_irqs": "2"}):
        change = tuner.apply(plan)
        assert change.text is None
        assert (pair.receiver.netns in plan.command) == plan.knob.peer
    assert shell(pair.receiver, f"ethtool -k {pair.receiver.device} | grep generic-receive").endswith("on")
    tuner.undo_all()
    assert shell(pair.receiver, f"ethtool -k {pair.receiver.device} | grep generic-receive") == before


def test_parameters_of_the_qdisc_that_is_there(veth_pair, tuner_of):
    end = veth_pair(qdisc="pfifo limit 100").sender
    tuner = tuner_of(end)
    tuner.poll_foreign()
    handle = shell(end, f"tc qdisc show dev {end.device} root").split()[2]
    assert tuner.setting("qdisc-limit").value == 100
    (plan,) = tuner.plan({"qdisc-limit": "7"})
    assert tuner.apply(plan).kept == (7,)
    assert shell(end, f"tc qdisc show dev {end.device} root").split()[2] == handle  # changed in place
    assert tuner.poll_foreign() == []
    set_one(tuner, "qdisc", "bfifo limit 9000")
    assert tuner.poll_foreign() == []
    tuner.undo_all()
    shown = shell(end, f"tc qdisc show dev {end.device} root")
    assert shown.split()[2] == handle
    assert "limit 100p" in shown
    by_shell(plan.command)
    assert "limit 7p" in shell(end, f"tc qdisc show dev {end.device} root")


def test_a_qdisc_that_could_not_be_put_back_is_not_taken_away(veth_pair, tuner_of):
    end = veth_pair().sender
    shell(end, f"tc qdisc add dev {end.device} root handle 1: htb")
    change = set_one(tuner_of(end), "qdisc", "pfifo")
    assert "could not be put back" in change.text
    assert "htb" in shell(end, f"tc qdisc show dev {end.device} root")


def test_the_kernels_own_refusals(veth_pair, tuner_of):
    end = veth_pair().sender
    tuner = tuner_of(end)
    assert set_one(tuner, "ring-tx", 512).text == "Operation not supported"
    unknown = set_one(tuner, "qdisc", "nosuchqdisc")
    assert (unknown.errno, unknown.text) == (errno.ENOENT, "Specified qdisc kind is unknown")
    zero = set_one(tuner, "channels-tx", 0)
    assert zero.errno == errno.EINVAL
    assert "no RX or TX channel" in zero.text


# namespaces, names, identity


@pytest.mark.parametrize("name", ["[red]", "x'y\"z", "é1", "fifteen-letters", "-C", "$(id)", "a;b"])
def test_hostile_names_are_reached_by_us_and_by_the_command(ifb, tuner_of, name):
    end = ifb()
    subprocess.run(["ip", "-n", end.netns, "link", "set", "dev", end.device, "name", name], check=True)
    tuner = tuner_of(end, name)
    for id, value in (("limit_min", "8"), ("txqueuelen", "44"), ("gro", "off")):
        (plan,) = tuner.plan({id: value})
        assert tuner.apply(plan).text is None
        tuner.undo()
        by_shell(plan.command)
        assert tuner.setting(id).text == value


def test_by_the_namespace_of_a_process(ifb, journal):
    end = ifb()
    sleeper = subprocess.Popen(["ip", "netns", "exec", end.netns, "sleep", "60"])
    try:
        inode = namespaces.resolve(end.netns).inode
        path = f"/proc/{sleeper.pid}/ns/net"
        deadline = time.monotonic() + 5
        while os.stat(path).st_ino != inode and time.monotonic() < deadline:
            time.sleep(0.01)
        with Tuner(end.device, Namespace(path, inode, f"pid:{sleeper.pid}"), journal) as tuner:
            for id, value in (("limit_min", "8"), ("txqueuelen", "44"), ("gro_flush_timeout", "5000")):
                (plan,) = tuner.plan({id: value})
                assert plan.command.startswith(f"nsenter --net={path} ")
                by_shell(plan.command)
                assert tuner.setting(id).text == value
    finally:
        sleeper.kill()
        sleeper.wait()


def test_the_same_name_in_two_namespaces_reaches_the_right_one(veth_pair, tuner_of):
    one, other = veth_pair().sender, veth_pair().sender
    for end in (one, other):
        subprocess.run(["ip", "-n", end.netns, "link", "set", "dev", end.device, "name", "same"], check=True)
    set_one(tuner_of(one, "same"), "txqueuelen", 33)
    assert shell(one, "cat /sys/class/net/same/tx_queue_len") == "33"
    assert shell(other, "cat /sys/class/net/same/tx_queue_len") == "1000"


def test_a_renamed_device_is_still_ours_and_a_re_created_one_is_not(ifb, tuner_of):
    end = ifb()
    tuner = tuner_of(end)
    set_one(tuner, "limit_min", 8)
    subprocess.run(["ip", "-n", end.netns, "link", "set", "dev", end.device, "name", "renamed"], check=True)
    assert set_one(tuner, "limit_min", 9).kept == (9,)
    assert tuner.device == "renamed"
    subprocess.run(["ip", "-n", end.netns, "link", "del", "renamed"], check=True)
    subprocess.run(["ip", "-n", end.netns, "link", "add", "renamed", "index", str(end.ifindex), "type", "ifb"], check=True)
    change = set_one_or_error(tuner)
    assert change == errno.ENODEV
    assert [one.errno for one in tuner.undo_all()] == [errno.ENODEV] * 2
    assert shell(end, f"cat {BQL.format('renamed', 0, 'limit_min')}") == "0"


def set_one_or_error(tuner):
    try:
        return set_one(tuner, "limit_min", 10).errno
    except OSError as error:
        return error.errno


def test_deleted_between_plan_and_write(ifb, tuner_of):
    end = ifb()

    def delete(step):
        if step == "after intent":
            subprocess.run(["ip", "-n", end.netns, "link", "del", end.device], check=True)

    tuner = tuner_of(end, step=delete)
    change = set_one(tuner, "limit_min", 8)
    assert (change.refused, change.errno) == (True, errno.ENODEV)
    assert "gone" in change.text


# other people, privilege, the journal's folder


def test_somebody_elses_changes_are_seen_within_a_second(ifb, veth_pair, tuner_of):
    end, pair = ifb(queues=2), veth_pair(queues=2)
    tuner, veth = tuner_of(end), tuner_of(pair.sender)
    assert tuner.poll_foreign() == veth.poll_foreign() == []
    shell(end, f"echo 77 > {BQL.format(end.device, 1, 'limit_min')}; ip link set {end.device} txqueuelen 5")
    texts = {event.text for event in tuner.poll_foreign()}
    assert texts == {"somebody set limit_min of queue 1: 0 -> 77", "somebody set txqueuelen: 32 -> 5"}
    shell(pair.sender, f"ethtool -K {pair.sender.device} tso on; ethtool -L {pair.sender.device} tx 1")
    shell(pair.receiver, f"echo 9 > /sys/class/net/{pair.receiver.device}/napi_defer_hard_irqs")
    texts = {event.text for event in veth.poll_foreign()}
    assert texts == {"somebody set tso: off -> on", "somebody set channels-tx: 2 -> 1",
                     "somebody set peer-napi_defer_hard_irqs: 0 -> 9"}  # fmt: skip
    assert tuner.poll_foreign() == veth.poll_foreign() == []


def test_bql_settings_are_seen_in_a_sample_too_and_ours_are_no_news(ifb, tuner_of):
    end = ifb(queues=2)
    tuner = tuner_of(end)
    with Sampler(end.device, end.netns, use_bpf=False) as sampler:
        assert tuner.poll_foreign(sampler.sample()) == []
        before = sampler.sample()
        set_one(tuner, "limit_min", 9)
        assert tuner.poll_foreign(before) == []
        assert tuner.poll_foreign(sampler.sample()) == []
        shell(end, f"echo 77 > {BQL.format(end.device, 1, 'limit_min')}")
        assert [event.text for event in tuner.poll_foreign(sampler.sample())] == ["somebody set limit_min of queue 1: 9 -> 77"]


def test_two_tuners_on_one_device_know_of_each_other(ifb, journal, tuner_of):
    end = ifb()
    first = tuner_of(end, journal=journal)
    set_one(first, "limit_min", 8)
    script = "import sys; from bqltop import cli; sys.exit(cli.main(sys.argv[1:]))"
    run = subprocess.run([sys.executable, "-c", script, "tune", end.device, "--netns", end.netns, "limit_min=16"],
                         capture_output=True, text=True, env={**os.environ, "BQLTOP_STATE_DIR": journal.folder})  # fmt: skip
    assert run.returncode == 0, run.stderr
    assert f"another bqltop (process {os.getpid()})" in run.stderr
    back = first.undo()
    assert back.text == "it has been set to 16 since"
    assert shell(end, f"cat {BQL.format(end.device, 0, 'limit_min')}") == "16"


def test_changes_from_several_threads_are_one_after_the_other(ifb, tuner_of):
    tuner = tuner_of(ifb(queues=4), journal=NoJournal())
    refused = []

    def work(queue):
        for value in range(1, 20):
            refused.append(set_one(tuner, "limit_min", value, queue=queue).refused)

    threads = [threading.Thread(target=work, args=(queue,)) for queue in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not any(refused)
    tuner.undo_all()
    assert tuner.setting("limit_min").values == (0,) * 4


def test_a_full_journal_refuses_the_change_in_one_line_and_the_next_one_works(ifb, tuner_of, tmp_path):
    folder = tmp_path / "full"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", folder], check=True)
    try:
        tuner = tuner_of(ifb(), journal=Journal(str(folder)))
        assert not set_one(tuner, "limit_min", 1).refused
        (folder / "ballast").write_bytes(b"x" * 52_000)
        with contextlib.suppress(OSError), open(folder / "more", "wb") as file:
            while file.write(b"x" * 512):
                file.flush()
        changes = [set_one(tuner, "limit_min", value) for value in range(2, 60)]
        refused = next(change for change in changes if change.refused)
        assert "No space left on device" in refused.text
        assert "\n" not in refused.text
        assert tuner.setting("limit_min").value == changes.index(refused) + 1
        assert not any(change.refused for change in tuner.undo_all())  # taking back needs no room
        assert tuner.setting("limit_min").value == 0
        (folder / "ballast").unlink()
        assert not set_one(tuner, "limit_min", 3).refused
    finally:
        subprocess.run(["umount", folder], check=True)


def test_a_read_only_journal_refuses_and_no_journal_goes_without(ifb, tuner_of, tmp_path):
    folder = tmp_path / "ro"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "ro", "tmpfs", folder], check=True)
    try:
        end = ifb()
        change = set_one(tuner_of(end, journal=Journal(str(folder))), "limit_min", 8)
        assert "Read-only file system" in change.text
        assert set_one(tuner_of(end, journal=NoJournal()), "limit_min", 8).kept == (8,)
    finally:
        subprocess.run(["umount", folder], check=True)
