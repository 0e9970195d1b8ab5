"""Gives each receive queue of a veth its number, which the kernel forgets to do in NAPI mode without an XDP program.

`veth_poll` wakes the sender's TX queue `rq->xdp_rxq.queue_index`. That field is written by `xdp_rxq_info_reg`, and
drivers/net/veth.c calls it only for XDP: with NAPI switched on by GRO alone it is 0 in every queue, so each poll wakes queue 0,
and any other queue that the full ring once stopped stays stopped for ever (seen on 6.18.44, with 2 queues and more). Attaching
an XDP program writes the numbers, and they stay when it is detached again.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct

# mov r0, XDP_PASS; exit (linux/bpf.h). An instruction is 8 bytes in the machine's byte order.
PASS = struct.pack("=BBhi", 0xB7, 0, 0, 2) + struct.pack("=BBhi", 0x95, 0, 0, 0)
BPF_PROG_LOAD, BPF_LINK_CREATE = 5, 28  # enum bpf_cmd
BPF_PROG_TYPE_XDP, BPF_XDP = 6, 37  # enum bpf_prog_type, enum bpf_attach_type
SYSCALL = {"x86_64": 321, "aarch64": 280, "riscv64": 280, "ppc64le": 361, "s390x": 351}  # __NR_bpf

libc = ctypes.CDLL(None, use_errno=True)


def bpf(command: int, attributes: bytes) -> int:
    """The bpf system call; returns a new file descriptor. Raises OSError."""
    number = SYSCALL.get(platform.machine())
    if number is None:
        raise OSError(f"the number of the bpf system call on {platform.machine()} is not known here")
    buffer = ctypes.create_string_buffer(attributes, len(attributes))
    fd = libc.syscall(number, command, buffer, len(attributes))
    if fd < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return fd


def number_queues(ifindex: int) -> None:
    """Attaches an XDP program that passes everything to a device of this thread's namespace, and detaches it. Raises OSError.

    The device has to be up: only then does veth go through its queues.
    """
    text, licence = ctypes.create_string_buffer(PASS, len(PASS)), ctypes.create_string_buffer(b"GPL")
    # union bpf_attr: prog_type, insn_cnt, insns, license
    load = struct.pack("=IIQQ", BPF_PROG_TYPE_XDP, len(PASS) // 8, ctypes.addressof(text), ctypes.addressof(licence))
    program = bpf(BPF_PROG_LOAD, load)
    try:
        link = bpf(BPF_LINK_CREATE, struct.pack("=IIII", program, ifindex, BPF_XDP, 0))
        os.close(link)  # the last descriptor of a link detaches it
    finally:
        os.close(program)
