"""eBPF instructions, for the few programs that are too short to be worth a compiler."""

from __future__ import annotations

import ctypes
import struct

from bqltop.kernel.btf import libbpf

# include/uapi/linux/bpf.h
PROG_TYPE_RAW_TRACEPOINT = 17
PSEUDO_MAP_VALUE, PSEUDO_KFUNC_CALL = 2, 2
"""What stands in the place of the source register: of a load, an address inside a map; of a call, a kernel function."""

LOAD_IMMEDIATE_64, LOAD_64, ADD, MOVE, MOVE_NUMBER, JUMP_IF_GREATER, CALL, EXIT = (
    0x18, 0x79, 0x07, 0xBF, 0xB7, 0x25, 0x85, 0x95,
)  # fmt: skip
"""Opcodes (Documentation/bpf/standardization/instruction-set.rst)."""

R0, R1, R2, R3 = range(4)

SIZE = 8
"""Bytes of one instruction."""


def instruction(opcode: int, destination: int = 0, source: int = 0, offset: int = 0, number: int = 0) -> bytes:
    """One instruction, in this machine's byte order."""
    little = struct.pack("=H", 1) == b"\1\0"
    registers = source << 4 | destination if little else destination << 4 | source
    return struct.pack("=BBhi", opcode, registers, offset, number)


def load(name: str, text: bytes) -> int:
    """Load a program for raw tracepoints; its file descriptor, negative when the kernel refused it (see ctypes.get_errno)."""
    return libbpf().bpf_prog_load(
        PROG_TYPE_RAW_TRACEPOINT, name.encode(), b"GPL", text, ctypes.c_size_t(len(text) // SIZE), None
    )
