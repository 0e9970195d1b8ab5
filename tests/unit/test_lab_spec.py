"""What can be said about a lab without building one."""

import ctypes
import os
import subprocess
import sys

import pytest

from bqltop.lab import FloodResult, LabError, LabSpec, LabUnavailable
from bqltop.lab.devices import unique_name, unknown_kind
from bqltop.lab.flood import MMsgHdr, MsgHdr, message_vector
from bqltop.lab.rules import iptables_text, nft_text
from bqltop.lab.scope import call


def test_flows_follow_the_queues_unless_they_are_given():
    assert LabSpec().flow_count == 1
    assert LabSpec(queues=4).flow_count == 64
    assert LabSpec(queues=4, flows=3).flow_count == 3


@pytest.mark.parametrize(("name", "value"), [("queues", 0), ("packet_size", 1473), ("rules", -1), ("flooders", 0), ("pps", -5)])
def test_a_value_out_of_bounds_is_named_with_its_bounds(name, value):
    with pytest.raises(LabError, match=rf"{name} is {value}, but has to be from \d+ to \d+"):
        LabSpec(**{name: value})


def test_the_prefix_comes_from_the_environment(monkeypatch):
    monkeypatch.setenv("BQLTOP_LAB_PREFIX", "other")
    assert LabSpec().prefix == "other"
    monkeypatch.delenv("BQLTOP_LAB_PREFIX")
    assert LabSpec().prefix == "bqltop"


def test_structures_have_the_size_of_the_kernels_on_64_bit():
    if ctypes.sizeof(ctypes.c_void_p) != 8:
        pytest.skip("sizes are those of 64-bit Linux")
    assert (ctypes.sizeof(MsgHdr), ctypes.sizeof(MMsgHdr)) == (56, 64)


def test_every_message_points_to_a_payload_of_the_asked_size():
    vector = message_vector(10, 3)
    iov = [message.hdr.iov.contents for message in vector]
    assert [part.length for part in iov] == [10, 10, 10]
    assert ctypes.string_at(iov[2].base, 10) == b"bqltopbqlt"


def test_as_many_rules_as_asked_and_no_others():
    assert iptables_text(3).count("-A PREROUTING") == 3
    assert iptables_text(0) == "*raw\nCOMMIT\n"
    assert nft_text(2).count("ip saddr 192.0.2.1 drop") == 2


def test_device_names_fit_and_differ():
    names = [unique_name("dummy") for _ in range(20)]
    assert len(set(names)) == 20
    assert all(len(name) <= 15 for name in names)


def test_the_rate_of_a_flood():
    assert FloodResult(sent=1000, errors=0, seconds=0.5).pps == 2000


def test_a_missing_tool_is_named_with_what_to_do():
    with pytest.raises(LabUnavailable, match="needs no-such-tool: apt install no-such-tool"):
        call(["no-such-tool"])


def test_a_failing_tool_speaks_for_itself():
    with pytest.raises(LabError, match=r"^sh -c .*: what went wrong$"):
        call(["sh", "-c", "echo what went wrong >&2; exit 3"])


def test_only_a_missing_kind_counts_as_unavailable():
    assert isinstance(unknown_kind(LabError("Error: Unknown device type."), "ifb"), LabUnavailable)
    assert not isinstance(unknown_kind(LabError("RTNETLINK answers: File exists"), "ifb"), LabUnavailable)


def test_without_root_one_sentence_says_so():
    if os.geteuid():
        pytest.skip("drops root, so it needs to have it")
    # A child, because this process cannot get its root back; the package is imported before, since nobody may enter /root.
    code = "import os; from bqltop.lab import Lab; os.setuid(65534); Lab().__enter__()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.strip().endswith("which only root may: run it as root (sudo).")
