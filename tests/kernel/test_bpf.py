"""BCC without kernel headers, programs run on demand, and the arithmetic they share with Python."""

from __future__ import annotations

import os
import random

import pytest
from leftovers import own_programs

from bqltop import histogram
from bqltop.kernel import netns
from bqltop.kernel.bpf import BpfError, Module, read_program
from bqltop.kernel.memory import Memory

pytestmark = pytest.mark.usefixtures("require_root")

CELLS = """
BPF_F_TABLE("array", u32, u64, counted, LOG_LINEAR_CELLS, 1024);
struct all { u64 cells[LOG_LINEAR_CELLS]; };
BPF_F_TABLE("array", u32, struct all, histogram, 1, 1024);
int cell_of(struct bpf_raw_tracepoint_args *ctx) { return log_linear_cell(ctx->args[0]); }
int octave(struct bpf_raw_tracepoint_args *ctx) { return octave_of(ctx->args[0]); }
int put(struct bpf_raw_tracepoint_args *ctx)
{
	u32 zero = 0;
	struct all *all = histogram.lookup(&zero);

	if (!all)
		return -1;
	count(all->cells, ctx->args[0]);
	return 0;
}
"""


@pytest.fixture
def module(factory):
    """A module of the given text behind common.h."""

    def make(text: str, **constants: int) -> Module:
        made = Module(read_program("common.h") + text, constants)
        factory.stack.callback(made.close)
        return made

    return make


def edges() -> list[int]:
    """Around every bound of a cell and every power of two, and values at random of all sizes."""
    rng = random.Random(1)
    around = [histogram.log_linear_bounds(cell)[side] for cell in range(histogram.LOG_LINEAR_CELLS) for side in (0, 1)]
    around += [1 << bit for bit in range(64)]
    near = {value + step for value in around for step in (-1, 0, 1)}
    sizes = {rng.getrandbits(rng.randint(1, 64)) for _ in range(3000)}
    return sorted(value for value in near | sizes if 0 <= value < 1 << 64)


def test_the_cells_of_the_eBPF_programs_are_those_of_python(module):
    cell_of = module(CELLS).runner("cell_of")
    values = edges()
    assert len(values) > 3000
    wrong = [(value, cell_of(value)) for value in values if cell_of(value) != histogram.log_linear_cell(value)]
    assert wrong == []


def test_the_octave_is_the_highest_bit(module):
    octave = module(CELLS).runner("octave")
    values = [value for value in edges() if value]
    assert [octave(value) for value in values] == [value.bit_length() - 1 for value in values]


def test_counting_puts_each_value_into_its_own_cell(module):
    loaded = module(CELLS)
    put, memory = loaded.runner("put"), loaded.memory("histogram")
    values = edges()[::7]
    for value in values:
        assert put(value) == 0
    expected = [0] * histogram.LOG_LINEAR_CELLS
    for value in values:
        expected[histogram.log_linear_cell(value)] += 1
    assert memory.cast("Q").tolist() == expected
    memory.release()


def test_an_array_map_is_memory_of_its_very_size(module):
    memory = module(CELLS).memory("counted")
    assert len(memory) == histogram.LOG_LINEAR_CELLS * 8
    memory.release()


def test_constants_of_64_bits_reach_the_program_whole(module):
    text = "int check(void *ctx) { return VALUE == 0xffff888012345678ULL && SMALL == 7; }"
    assert module(text, VALUE=0xFFFF888012345678, SMALL=7).runner("check")() == 1


def test_what_does_not_compile_is_told_in_one_line(capfd):
    with pytest.raises(BpfError) as caught:
        Module("int broken(void *ctx) { return nothing_of_this_name; }", {})
    assert "nothing_of_this_name" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert capfd.readouterr().err == ""


def test_what_the_verifier_refuses_is_told_in_one_line(module, capfd):
    loaded = module("int bad(struct bpf_raw_tracepoint_args *ctx) { return *(int *)ctx->args[0]; }")
    with pytest.raises(BpfError, match="the kernel refused the eBPF program bad") as caught:
        loaded.load("bad")
    assert "\n" not in str(caught.value)
    assert capfd.readouterr().err == ""


def test_a_tracepoint_that_is_not_there_is_named(module):
    loaded = module("int nothing(void *ctx) { return 0; }")
    with pytest.raises(BpfError, match="no raw tracepoint no_such_tracepoint"):
        loaded.attach("nothing", "no_such_tracepoint")


def test_closing_a_module_unloads_its_programs():
    before = own_programs()
    made = Module("int nothing(void *ctx) { return 0; }", {})
    made.attach("nothing", "net_dev_xmit")
    assert len(own_programs() - before) >= 1
    made.close()
    assert own_programs() == before


def test_memory_of_the_kernel_is_read_and_a_wrong_address_refused():
    before = own_programs()
    with Memory() as memory:
        net = memory.net(netns.current())
        # The address of struct net is a kernel address, and its first bytes can be read twice alike at two sizes.
        assert net >> 47 == 0x1FFFF
        assert memory.read(net, 16)[:8] == memory.read(net, 8) == memory.number(net).to_bytes(8, "little")
        assert len(memory.read(net, 4096)) == 4096
        with pytest.raises(BpfError, match="cannot be read"):
            memory.read(net, 4097)
        with pytest.raises(BpfError, match="cannot be read"):
            memory.read(0x10, 8)
    assert own_programs() == before


def test_each_namespace_has_its_own_struct_net(netns):
    from bqltop.kernel.netns import current, resolve

    first, second = netns(), netns()
    with Memory() as memory:
        addresses = {memory.net(resolve(name)) for name in (first, second)} | {memory.net(current())}
        again = memory.net(resolve(first))
    assert len(addresses) == 3
    assert again in addresses


def test_compiling_leaves_the_environment_and_the_working_directory_alone(module, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    module("int nothing(void *ctx) { return 0; }")
    assert os.listdir(tmp_path) == []
