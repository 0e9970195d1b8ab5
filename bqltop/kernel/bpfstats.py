"""The kernel's own account of eBPF programs: how often they ran and for how long (about 20 ns a run while it is kept).

It is switched on by holding a descriptor (bpf(BPF_ENABLE_STATS), Linux 5.8), so it ends with its holder, however that
ends; the sysctl kernel.bpf_stats_enabled would stay on.
"""

from __future__ import annotations

import ctypes
import os
import platform
from collections.abc import Iterable

from bqltop.kernel.bpf import BpfError

BPF_ENABLE_STATS, BPF_STATS_RUN_TIME = 32, 0
"""include/uapi/linux/bpf.h"""
SYS_BPF = 280 if platform.machine() == "aarch64" else 321

_libc = ctypes.CDLL(None, use_errno=True)


class Statistics:
    """Held as long as the kernel shall count. Raises BpfError where it does not. ``read`` in one thread only."""

    def __init__(self):
        attributes = ctypes.c_uint32(BPF_STATS_RUN_TIME)
        size = ctypes.sizeof(attributes)
        self._fd = _libc.syscall(SYS_BPF, BPF_ENABLE_STATS, ctypes.byref(attributes), size)
        if self._fd < 0:
            raise BpfError(f"the kernel keeps no account of eBPF programs: {os.strerror(ctypes.get_errno())}")

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def read(programs: Iterable[int]) -> tuple[int, int]:
    """(nanoseconds, runs) of these programs together, by their descriptors. 15 microseconds each."""
    spent = runs = 0
    for fd in programs:
        with open(f"/proc/self/fdinfo/{fd}", "rb", buffering=0) as file:
            for line in file.read().split(b"\n"):
                if line.startswith(b"run_time_ns:"):
                    spent += int(line[12:])
                elif line.startswith(b"run_cnt:"):
                    runs += int(line[8:])
    return spent, runs
