"""ethtool over netlink against the ethtool program, and its refusals in the kernel's words."""

import errno
import os
import shutil
import subprocess
import time

import pytest

from bqltop.kernel import netns as namespaces
from bqltop.kernel.ethtool import CHANNELS, COALESCE, RINGS, Ethtool, EthtoolError

pytestmark = pytest.mark.usefixtures("require_root")
needs_ethtool = pytest.mark.skipif(not shutil.which("ethtool"), reason="no ethtool program to compare with")


@pytest.fixture
def opened():
    """Ethtool in a namespace of that name, closed afterwards."""
    made = []

    def open_in(name):
        made.append(Ethtool(namespaces.resolve(name)))
        return made[-1]

    yield open_in
    for one in made:
        one.close()


def program(end, option):
    """What ``ethtool OPTION DEVICE`` prints: word -> value as text; the first of several sections wins."""
    run = subprocess.run(["ip", "netns", "exec", end.netns, "ethtool", option, end.device], capture_output=True, text=True)
    found = {}
    for line in run.stdout.splitlines():
        word, colon, value = line.partition(":")
        if colon:
            found.setdefault(word.strip().lower(), value.strip())
    return found, run.stderr


@needs_ethtool
def test_channels_are_what_ethtool_shows(veth_pair, opened):
    end = veth_pair(queues=4).sender
    values = opened(end.netns).get(CHANNELS, end.device)
    shown, _ = program(end, "-l")
    assert {"rx": str(values["rx"]), "tx": str(values["tx"])} == {"rx": "4", "tx": "4"}
    assert shown["rx"] == str(values["rx-max"])  # the maxima come first
    assert "combined" not in values  # absent, not 0: veth has none
    assert shown["combined"] == "n/a"


@needs_ethtool
def test_coalescing_is_what_ethtool_shows_and_what_is_absent_is_not_supported(tun, opened):
    end = tun()
    ethtool = opened(end.netns)
    values = ethtool.get(COALESCE, end.device)
    assert set(values) == {"rx-frames"}
    ethtool.set(COALESCE, end.device, rx_frames=9)
    shown, _ = program(end, "-c")
    assert shown["rx-frames"] == "9" == str(ethtool.get(COALESCE, end.ifindex)["rx-frames"])
    assert shown["tx-usecs"] == "n/a"


@needs_ethtool
def test_features_are_what_ethtool_shows(veth_pair, opened):
    end = veth_pair().sender
    features = opened(end.netns).features(end.device)
    shown, _ = program(end, "-k")
    short = {"rx-gro": "generic-receive-offload", "tx-generic-segmentation": "generic-segmentation-offload",
             "tx-scatter-gather": "tx-scatter-gather", "tx-tcp-segmentation": "tx-tcp-segmentation",
             "highdma": "highdma", "tx-vlan-hw-insert": "tx-vlan-offload", "rx-gro-list": "rx-gro-list"}  # fmt: skip
    for name, word in short.items():
        if name in features:
            text = ("on" if features[name].active else "off") + (" [fixed]" if features[name].fixed else "")
            assert shown[word].replace(" [requested on]", "").replace(" [requested off]", "") == text, name


def test_switching_an_offload(veth_pair, opened):
    end = veth_pair(napi_mode=False).sender
    ethtool = opened(end.netns)
    for on in (False, True, False):
        ethtool.set_features(end.ifindex, **{"tx-tcp-segmentation": on, "rx-gro": not on})
        features = ethtool.features(end.ifindex)
        assert (features["tx-tcp-segmentation"].active, features["rx-gro"].active) == (on, not on)


def test_refusals_carry_the_kernels_sentence(veth_pair, tun, opened):
    veth, other = veth_pair().sender, tun()
    of_veth, of_tun = opened(veth.netns), opened(other.netns)
    asked = [
        (lambda: of_veth.get(RINGS, veth.device), errno.EOPNOTSUPP, "Operation not supported"),
        (lambda: of_veth.set(CHANNELS, veth.device, tx=99), errno.EINVAL, "requested channel count exceeds maximum"),
        (lambda: of_tun.set(COALESCE, other.device, tx_usecs=5), errno.EINVAL, "cannot modify an unsupported parameter"),
        (lambda: of_veth.get(CHANNELS, "no-such"), errno.ENODEV, "no device matches name"),
        (lambda: of_veth.set_features(veth.device, nonsense=True), errno.EOPNOTSUPP, "bit name not found"),
    ]
    for ask, number, sentence in asked:
        with pytest.raises(EthtoolError) as caught:
            ask()
        assert (caught.value.errno, caught.value.strerror) == (number, sentence)


def test_somebody_elses_changes_are_announced_and_only_in_their_namespace(veth_pair, opened):
    pair = veth_pair(napi_mode=False)
    here, there = opened(pair.sender.netns).monitor(), opened(pair.receiver.netns).monitor()
    try:
        assert here.drain() == []
        subprocess.run(["ip", "netns", "exec", pair.sender.netns, "ethtool", "-K", pair.sender.device, "gro", "on"], check=True)
        deadline = time.monotonic() + 1
        while not (changes := here.drain()) and time.monotonic() < deadline:
            time.sleep(0.01)
        assert (pair.sender.ifindex, "features") in changes
        assert (pair.receiver.ifindex, "channels") not in there.drain()
    finally:
        here.close()
        there.close()


def test_without_the_right_to_set_the_kernel_says_so(netns, opened):
    ethtool = opened(netns())
    ethtool.may_set()
    pid = os.fork()
    if not pid:
        status = 1
        try:
            os.setresuid(65534, 65534, 65534)  # drops the capabilities; the socket's own count no more than ours
            mine = Ethtool()
            mine.may_set()
        except EthtoolError as error:
            status = 0 if (error.errno, error.strerror) == (errno.EPERM, "Operation not permitted") else 2
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
