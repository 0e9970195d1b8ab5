"""Completions one by one, by a hardware breakpoint on ``dql_completed`` (programs/complete.c).

Distribution kernels build lib/ without ftrace, so neither fentry nor a kprobe reaches that function. Without the breakpoint
completions are the changes of num_completed seen at polls, transmits and wake-ups, where several in a row look like one.
A breakpoint costs a debug exception for each completion of each device, so it is set only when asked for.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import platform
import struct

from bqltop.kernel.bpf import BpfError, Module
from bqltop.kernel.btf import Btf
from bqltop.kernel.proc import online_cpus
from bqltop.model import Probe

FUNCTION = "dql_completed"
CHANGES = "changes of num_completed, seen at polls, transmits and wake-ups: several in a row count as one (--completions)"
"""The precision without the breakpoint."""
NO_BQL = "this driver has no BQL, which counts completions"

SYS_PERF_EVENT_OPEN = {"x86_64": 298, "aarch64": 241}
PERF_TYPE_BREAKPOINT = 5  # linux/perf_event.h, as the next ones
PERF_EVENT_IOC_SET_BPF = 0x40042408
PERF_FLAG_FD_CLOEXEC = 8
HW_BREAKPOINT_X = 4  # linux/hw_breakpoint.h
ATTR_SIZE = 112  # PERF_ATTR_SIZE_VER5
_ATTR = struct.Struct("<IIQQQQQIIQQ")
"""perf_event_attr up to bp_len: type, size, config, sample_period, sample_type, read_format, flags, wakeup_events, bp_type,
bp_addr, bp_len."""


class Completions:
    """The breakpoint, set on every CPU until closed. Raises BpfError when this kernel or machine has none to give.

    It is set before the programs are compiled, for these count completions themselves where there is no breakpoint."""

    def __init__(self):
        number = SYS_PERF_EVENT_OPEN.get(platform.machine())
        if number is None:
            raise BpfError(f"no hardware breakpoints on {platform.machine()}")
        attributes = _ATTR.pack(
            PERF_TYPE_BREAKPOINT, ATTR_SIZE, 0, 1, 0, 0, 0, 0, HW_BREAKPOINT_X, address_of(FUNCTION), 8
        ).ljust(ATTR_SIZE, b"\0")
        self._events: list[int] = []
        libc = ctypes.CDLL(None, use_errno=True)
        try:
            for cpu in online_cpus():
                event = libc.syscall(number, attributes, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC)
                if event < 0:
                    raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
                self._events.append(event)
        except OSError as error:
            self.close()
            raise BpfError(f"no hardware breakpoint to be had: {error.strerror}") from error

    def attach(self, module: Module) -> None:
        """Run the module's program at the breakpoint. Raises BpfError."""
        program = module.load("on_completed", "PERF_EVENT")
        try:
            for event in self._events:
                fcntl.ioctl(event, PERF_EVENT_IOC_SET_BPF, program)
        except OSError as error:
            raise BpfError(f"the breakpoint takes no eBPF program: {error.strerror}") from error

    def calls(self) -> int:
        """Completions of all devices since it was set, as the kernel counts them."""
        return sum(struct.unpack("=Q", os.read(event, 8))[0] for event in self._events)

    def close(self) -> None:
        for event in self._events:
            os.close(event)
        self._events.clear()


def completions_probe(bql: bool, completions: Completions | None, why_not: str | None) -> Probe:
    """How completions are seen."""
    if not bql:
        return Probe("completions", False, NO_BQL)
    if completions is not None:
        return Probe("completions", True, f"exact, by a hardware breakpoint on {FUNCTION}")
    return Probe("completions", True, f"{why_not}; {CHANGES}" if why_not else CHANGES)


def second_argument(btf: Btf) -> int:
    """Where a function's second argument is among the registers: rsi on x86-64, x1 on arm64."""
    return btf.offset("pt_regs", "si") if btf.has("pt_regs", "si") else btf.offset("pt_regs", "regs") + 8


def address_of(function: str) -> int:
    """Where a kernel function is. Raises BpfError when the kernel does not say."""
    with open("/proc/kallsyms") as symbols:
        for line in symbols:
            address, _, name, *_ = line.split()
            if name == function and int(address, 16):
                return int(address, 16)
    raise BpfError(f"the kernel does not say where {function} is (kernel.kptr_restrict)")
