"""Reads of kernel memory by address, for finding things, not for measuring them.

Two programs of about ten instructions, attached to nothing and run on demand. They are written down as instructions:
compiling them would take longer than everything else at start together.
"""

from __future__ import annotations

import ctypes
import mmap
import os

from bqltop.kernel import netns
from bqltop.kernel.bpf import BpfError, Runner
from bqltop.kernel.btf import Btf, libbpf
from bqltop.kernel.instructions import (
    ADD,
    CALL,
    EXIT,
    JUMP_IF_GREATER,
    LOAD_64,
    LOAD_IMMEDIATE_64,
    MOVE,
    MOVE_NUMBER,
    PSEUDO_MAP_VALUE,
    R0,
    R1,
    R2,
    R3,
    instruction,
    load,
)
from bqltop.model import Namespace

PAGE = 4096

# include/uapi/linux/bpf.h
MAP_TYPE_ARRAY = 2
F_MMAPABLE = 1 << 10
GET_CURRENT_TASK, PROBE_READ_KERNEL = 35, 113

def page_address(destination: int, page_map: int) -> bytes:
    """Put the address of the page, the only entry of an array map, into a register: two instructions long."""
    return instruction(LOAD_IMMEDIATE_64, destination, PSEUDO_MAP_VALUE, 0, page_map) + instruction(0)


def peek(page_map: int) -> bytes:
    """args: address, size. Copies so many bytes to the page; the helper's result, or -1 when the size is too large."""
    return b"".join(
        (
            instruction(LOAD_64, R2, R1, 8),
            instruction(LOAD_64, R3, R1, 0),
            instruction(JUMP_IF_GREATER, R2, 0, 4, PAGE),
            page_address(R1, page_map),
            instruction(CALL, number=PROBE_READ_KERNEL),
            instruction(EXIT),
            instruction(MOVE_NUMBER, R0, number=-1),
            instruction(EXIT),
        )
    )


def current_net(page_map: int, nsproxy: int, net_ns: int) -> bytes:
    """The page's first word becomes the address of the caller's struct net: current->nsproxy->net_ns, by their offsets."""
    read_word = (
        page_address(R1, page_map),
        instruction(MOVE_NUMBER, R2, number=8),
        instruction(CALL, number=PROBE_READ_KERNEL),
    )
    return b"".join(
        (
            instruction(CALL, number=GET_CURRENT_TASK),
            instruction(MOVE, R3, R0),
            instruction(ADD, R3, number=nsproxy),
            *read_word,
            page_address(R1, page_map),
            instruction(LOAD_64, R3, R1, 0),
            instruction(ADD, R3, number=net_ns),
            *read_word,
            instruction(EXIT),
        )
    )


class _MapOptions(ctypes.Structure):
    """The beginning of ``struct bpf_map_create_opts`` (libbpf 1.0, bpf.h); the rest is taken as zero."""

    _fields_ = [
        ("sz", ctypes.c_size_t),
        ("btf_fd", ctypes.c_uint32),
        ("btf_key_type_id", ctypes.c_uint32),
        ("btf_value_type_id", ctypes.c_uint32),
        ("btf_vmlinux_value_type_id", ctypes.c_uint32),
        ("inner_map_fd", ctypes.c_uint32),
        ("map_flags", ctypes.c_uint32),
    ]


class Memory:
    """The kernel's memory, some microseconds a read. Raises BpfError when this process may not."""

    def __init__(self):
        btf = Btf.vmlinux()
        self._fds: list[int] = []
        try:
            page_map = self._make_page()
            self._peek = self._load("peek", peek(page_map))
            net = current_net(page_map, btf.offset("task_struct", "nsproxy"), btf.offset("nsproxy", "net_ns"))
            self._current_net = self._load("current_net", net)
            self._page = mmap.mmap(page_map, PAGE)
        except BaseException:
            self._close_fds()
            raise

    def _make_page(self) -> int:
        options = _MapOptions(sz=ctypes.sizeof(_MapOptions), map_flags=F_MMAPABLE)
        return self._keep(
            libbpf().bpf_map_create(MAP_TYPE_ARRAY, b"page", 4, PAGE, 1, ctypes.byref(options)), "make an eBPF map"
        )

    def _load(self, name: str, text: bytes) -> Runner:
        return Runner(self._keep(load(name, text), f"load the eBPF program {name}"))

    def _keep(self, fd: int, what: str) -> int:
        if fd < 0:
            raise BpfError(f"cannot {what}: {os.strerror(ctypes.get_errno())}")
        self._fds.append(fd)
        return fd

    def read(self, address: int, size: int) -> bytes:
        """``size`` (up to 4096) bytes at ``address``; BpfError when there is no such memory."""
        if self._peek(address, size):
            raise BpfError(f"kernel memory at {address:#x} cannot be read")
        return self._page[:size]

    def number(self, address: int, size: int = 8) -> int:
        """An unsigned number of ``size`` bytes at ``address``."""
        return int.from_bytes(self.read(address, size), "little")

    def net(self, namespace: Namespace) -> int:
        """Address of the namespace's struct net."""

        def run() -> int:
            if self._current_net():
                raise BpfError("the network namespace of this thread cannot be read")
            return int.from_bytes(self._page[:8], "little")

        return netns.run_in(namespace, run)

    def close(self) -> None:
        self._page.close()
        self._close_fds()

    def _close_fds(self) -> None:
        while self._fds:
            os.close(self._fds.pop())

    def __enter__(self) -> Memory:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
