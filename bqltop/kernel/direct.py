"""Kernel memory read by a load instruction, where the kernel has ``bpf_rdonly_cast`` (since 6.2).

A program on a raw tracepoint gets addresses as plain numbers and has to ask a helper to read there: four functions deep,
which processors whose returns and indirect jumps are guarded make dear. ``bpf_rdonly_cast`` tells the verifier what lies
at an address; it costs nothing at run time, and the load behind it is one instruction, which reads 0 where there is no
memory. Neither of BCC's versions knows calls of kernel functions: the programs call a placeholder (``load`` in
programs/common.h), which ``link`` turns into the real thing.
"""

from __future__ import annotations

import ctypes
import functools
import os

from bqltop.kernel.btf import Btf, BtfError
from bqltop.kernel.instructions import (
    CALL,
    EXIT,
    LOAD_64,
    MOVE_NUMBER,
    PSEUDO_KFUNC_CALL,
    R0,
    R1,
    R2,
    SIZE,
    instruction,
    load,
)

FUNCTION = "bpf_rdonly_cast"
PLACEHOLDER = 0x7FF0_0001
"""The number of a helper that does not exist."""

STRUCTURES = ("netdev_queue", "sk_buff", "napi_struct")
"""What the programs read directly."""


def constants() -> dict[str, int]:
    """What the programs need to read directly; nothing where this kernel cannot."""
    if not available():
        return {}
    btf = Btf.vmlinux()
    return {"RDONLY_CAST": PLACEHOLDER} | {f"TYPE_{name}": btf.structure(name) for name in STRUCTURES}


@functools.cache
def available() -> bool:
    """Whether this kernel lets a raw tracepoint's program read a queue's state this way: it is asked to load one."""
    try:
        btf = Btf.vmlinux()
        text = b"".join(
            (
                instruction(MOVE_NUMBER, R1, number=0),
                instruction(MOVE_NUMBER, R2, number=btf.structure("netdev_queue")),
                instruction(CALL, source=PSEUDO_KFUNC_CALL, number=btf.function(FUNCTION)),
                instruction(LOAD_64, R0, R0, btf.offset("netdev_queue", "state")),
                instruction(EXIT),
            )
        )
    except BtfError:
        return False
    fd = load("direct", text)
    if fd < 0:
        return False
    os.close(fd)
    return True


def link(start: int, size: int) -> None:
    """Turn calls of the placeholder into calls of the kernel's function: ``size`` bytes of program text at ``start``."""
    text = (ctypes.c_char * size).from_address(start)
    wanted = instruction(CALL, number=PLACEHOLDER)
    for at in range(0, size, SIZE):
        if text[at : at + SIZE] == wanted:
            text[at : at + SIZE] = instruction(CALL, source=PSEUDO_KFUNC_CALL, number=Btf.vmlinux().function(FUNCTION))
