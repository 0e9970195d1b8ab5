"""Offsets and constants from BTF against bpftool, which reads the same BTF with code of its own."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from bqltop.kernel.btf import Btf, BtfError
from bqltop.kernel.engine import OFFSETS, QUEUE_MEMBERS, RING_OFFSETS, StateBits
from bqltop.kernel.target import Ring


@pytest.fixture(scope="session", autouse=True)
def kernel_with_btf():
    if not Path("/sys/kernel/btf/vmlinux").exists():
        pytest.skip("this kernel has no BTF")


@pytest.fixture(scope="session")
def dumped() -> str:
    """`bpftool btf dump` of the kernel, raw."""
    bpftool = shutil.which("bpftool") or shutil.which("bpftool", path="/usr/sbin:/sbin")
    if not bpftool:
        pytest.skip("bpftool is not installed (Debian: apt install bpftool)")
    return subprocess.run(
        [bpftool, "btf", "dump", "file", "/sys/kernel/btf/vmlinux"], capture_output=True, text=True, check=True
    ).stdout


@pytest.fixture(scope="session")
def structs(dumped: str) -> dict[str, tuple[int, dict[str, tuple[int, int]]]]:
    """name -> (size, member -> (byte offset, type id)); members of anonymous ones are not looked into."""
    found = {}
    blocks = re.finditer(r"^\[(\d+)\] STRUCT '(\w+)' size=(\d+) vlen=\d+\n((?:\t.*\n)*)", dumped, re.MULTILINE)
    for block in blocks:
        members = re.findall(r"\t'(.*?)' type_id=(\d+) bits_offset=(\d+)", block[4])
        found.setdefault(block[2], (int(block[3]), {name: (int(bits) // 8, int(kind)) for name, kind, bits in members}))
    return found


FLAT = sorted(
    {
        *((struct, member) for struct, members in OFFSETS.items() for member in members),
        ("task_struct", "nsproxy"),
        ("nsproxy", "net_ns"),
        ("net_device", "_tx"),
        ("net_device", "napi_list"),
        ("net_device", "num_rx_queues"),
    }
)


@pytest.mark.parametrize(("struct", "member"), FLAT, ids=".".join)
def test_an_offset_is_the_one_that_bpftool_prints(structs, struct, member):
    size, members = structs[struct]
    if member not in members:
        pytest.skip(f"{member} lies in an anonymous member of {struct} here")
    assert Btf.vmlinux().offset(struct, member) == members[member][0]
    assert Btf.vmlinux().size(struct) == size


@pytest.mark.parametrize("path", [path for path in QUEUE_MEMBERS.values() if path.startswith("dql.")])
def test_a_path_through_two_structures_adds_their_offsets(structs, path):
    member = path.removeprefix("dql.")
    there = structs["dql"][1].get(member)
    btf = Btf.vmlinux()
    assert btf.has("netdev_queue", path) == (there is not None)
    if there:
        assert btf.offset("netdev_queue", path) == structs["netdev_queue"][1]["dql"][0] + there[0]


@pytest.mark.parametrize("ring", [ring for ring in Ring if RING_OFFSETS[ring][0]], ids=lambda ring: ring.name)
def test_offsets_of_the_drivers_structures(structs, ring):
    module, wanted = RING_OFFSETS[ring]
    known = [(struct, member) for struct, members in wanted.items() for member in members if struct in structs]
    if not known:
        pytest.skip(f"{module} is not built into this kernel")
    for struct, member in known:
        first, _, rest = member.partition(".")
        if not rest:
            assert Btf.module(module).offset(struct, member) == structs[struct][1][first][0]


def test_the_state_bits_are_those_of_the_kernels_enum(dumped):
    values = {name: 1 << int(value) for name, value in re.findall(r"\t'__QUEUE_STATE_(\w+)' val=(\d+)", dumped)}
    bits = StateBits.from_btf()
    assert (bits.drv_xoff, bits.stack_xoff, bits.frozen) == (values["DRV_XOFF"], values["STACK_XOFF"], values["FROZEN"])


def test_an_anonymous_union_is_looked_through():
    btf = Btf.vmlinux()
    # struct sk_buff keeps next, prev and dev in anonymous unions and structures at its beginning.
    assert btf.offset("sk_buff", "next") == 0
    assert btf.offset("sk_buff", "dev") == 16


def test_sizes_of_members():
    btf = Btf.vmlinux()
    assert btf.member_size("netdev_queue", "dql.num_queued") == 4
    assert btf.member_size("netdev_queue", "state") == 8
    assert btf.member_size("net_device", "name") == 16  # IFNAMSIZ, an array


def test_what_a_kernel_does_not_have_is_said_by_name():
    btf = Btf.vmlinux()
    assert not btf.has("netdev_queue", "no_such_member")
    with pytest.raises(BtfError, match=r"struct netdev_queue has no dql\.no_such on this kernel"):
        btf.offset("netdev_queue", "dql.no_such")
    with pytest.raises(BtfError, match="has no no_such_struct"):
        btf.offset("no_such_struct", "x")
    with pytest.raises(BtfError, match="has no __QUEUE_STATE_NO_SUCH"):
        btf.constant("netdev_queue_state_t", "__QUEUE_STATE_NO_SUCH")


def test_a_module_that_is_built_in_or_not_there_is_looked_up_in_the_kernel():
    assert Btf.module("no_such_module").size("netdev_queue") == Btf.vmlinux().size("netdev_queue")
