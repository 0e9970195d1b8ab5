"""Loads of kernel memory from raw tracepoint programs: the same values as the helper's, and a placeholder that is gone."""

from __future__ import annotations

import ctypes

import pytest

from bqltop.kernel import direct
from bqltop.kernel.bpf import Module, read_program
from bqltop.kernel.btf import Btf, BtfError
from bqltop.kernel.instructions import CALL, EXIT, MOVE_NUMBER, PSEUDO_KFUNC_CALL, R0, instruction
from bqltop.kernel.memory import Memory
from bqltop.kernel.netns import resolve
from bqltop.kernel.target import find

pytestmark = pytest.mark.usefixtures("require_root")

READ = """
int with_helper(struct bpf_raw_tracepoint_args *ctx) { TYPE value = 0; read_to(value, ctx->args[0] + OFFSET); return value; }
int with_load(struct bpf_raw_tracepoint_args *ctx)
{
	TYPE value = 0;

	load(value, netdev_queue, ctx->args[0], OFFSET);
	return value;
}
"""
TYPES = {4: "u32", 8: "u64"}


@pytest.fixture
def function() -> int:
    """BTF id of the kernel's function."""
    try:
        return Btf.vmlinux().function(direct.FUNCTION)
    except BtfError:
        pytest.skip(f"this kernel has no {direct.FUNCTION} (before 6.2): everything is read by the helper")


def test_only_calls_of_the_placeholder_are_turned_into_the_kernels_function(function):
    other = instruction(CALL, number=14)
    text = other + instruction(CALL, number=direct.PLACEHOLDER) + instruction(MOVE_NUMBER, R0, number=direct.PLACEHOLDER)
    memory = ctypes.create_string_buffer(text + instruction(EXIT), len(text) + 8)
    direct.link(ctypes.addressof(memory), len(memory))
    assert memory.raw == (
        other
        + instruction(CALL, source=PSEUDO_KFUNC_CALL, number=function)
        + instruction(MOVE_NUMBER, R0, number=direct.PLACEHOLDER)
        + instruction(EXIT)
    )


@pytest.mark.usefixtures("function")
def test_a_kernel_that_has_the_function_is_read_directly():
    assert direct.available()
    assert direct.constants()["TYPE_sk_buff"] == Btf.vmlinux().structure("sk_buff")


@pytest.mark.parametrize("member", ["state", "dql.slack_hold_time", "dql.num_queued"])
def test_a_load_reads_what_the_helper_reads_and_what_is_there(member, veth_pair, factory):
    pair = veth_pair()
    btf = Btf.vmlinux()
    offset, size = btf.offset("netdev_queue", member), btf.member_size("netdev_queue", member)
    module = Module(
        f"#define TYPE {TYPES[size]}\n#define OFFSET {offset}\n" + read_program("common.h") + READ, direct.constants()
    )
    factory.stack.callback(module.close)
    with Memory() as memory:
        queue = find(memory, resolve(pair.sender.netns), pair.sender.ifindex, "veth").txq
        there = memory.number(queue + offset, size)
    assert module.runner("with_load")(queue) == module.runner("with_helper")(queue) == there
    # dql_init: a second; a device at rest has sent nothing
    assert there > 0 if member == "dql.slack_hold_time" else there == 0


@pytest.mark.parametrize("address", [0, 8, 1 << 63])
def test_memory_that_is_not_there_reads_as_0(address, factory):
    module = Module("#define TYPE u64\n#define OFFSET 0\n" + read_program("common.h") + READ, direct.constants())
    factory.stack.callback(module.close)
    assert module.runner("with_load")(address) == module.runner("with_helper")(address) == 0
