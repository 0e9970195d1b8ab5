"""What only sysfs has of a device, and what it has when there is no eBPF: all below ``class/net`` of one namespace.

Every function takes the directory descriptor of that namespace's sysfs (netns.sysfs_dir) and works from any thread.
Documentation/ABI/testing/sysfs-class-net-queues.
"""

from __future__ import annotations

import contextlib
import os
import resource
import time

from bqltop.model import QueueSample, Unit

BQL_FOLDER = "byte_queue_limits"
BQL_FILES = ("limit", "limit_min", "limit_max", "hold_time", "inflight", "stall_thrs", "stall_max", "stall_cnt")
CLOCK_MONOTONIC_COARSE = 6
FILES_KEPT_FREE = 256
"""Descriptors left for everything else when many queues' files are kept open."""

HZ = round(1 / time.clock_getres(CLOCK_MONOTONIC_COARSE))
"""The kernel's jiffies per second: the coarse clock moves once a jiffy (kernel/time/posix-timers.c)."""


def read(sysfs: int, path: str) -> str | None:
    """The text of a file without its newline; None when it is not there or may not be read."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC, dir_fd=sysfs)
    except (OSError, ValueError):
        return None
    try:
        return os.fsdecode(os.read(fd, 4096)).rstrip("\n")
    except OSError:
        return None
    finally:
        os.close(fd)


def read_number(sysfs: int, path: str) -> int | None:
    """A file that holds one decimal or 0x-hexadecimal number."""
    text = read(sysfs, path)
    try:
        return int(text, 0) if text else None
    except ValueError:
        return None


def device_folder(device: str) -> str:
    """Where a device's files are, below the directory descriptor."""
    return f"class/net/{device}"


def tx_queue_count(sysfs: int, device: str) -> int | None:
    """TX queues in use (real_num_tx_queues)."""
    count = sum(name.startswith("tx-") for name in _list(sysfs, f"{device_folder(device)}/queues"))
    return count or None


def _list(sysfs: int, path: str) -> list[str]:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=sysfs)
    except (OSError, ValueError):
        return []
    try:
        return os.listdir(fd)
    except OSError:
        return []
    finally:
        os.close(fd)


def tun_flags(sysfs: int, device: str) -> int | None:
    """IFF_TUN, IFF_TAP, IFF_MULTI_QUEUE, ... of a tun or tap; None for every other device."""
    return read_number(sysfs, f"{device_folder(device)}/tun_flags")


def has_bql(sysfs: int, device: str) -> bool:
    """Whether the first TX queue shows BQL files (kernels before 6.9 show them for drivers that never use them)."""
    return BQL_FOLDER in _list(sysfs, f"{device_folder(device)}/queues/tx-0")


def unit_of(driver: str | None) -> Unit:
    """What the driver charges BQL for one packet: veth 1, everybody else its bytes."""
    return Unit.PACKETS if driver == "veth" else Unit.BYTES


def jiffies_to_ms(jiffies: int) -> int:
    return round(jiffies * 1000 / HZ)


class QueueFiles:
    """The files of all TX queues of one device, kept open: 0.8 microseconds a file and read.

    The descriptors survive a rename; after the device is gone, and for a queue that was taken away, values are None.
    Files beyond what RLIMIT_NOFILE allows are opened anew at each read.
    """

    def __init__(self, sysfs: int, device: str, unit: Unit | None = None, queues: int | None = None):
        self._sysfs = sysfs
        self.device = device
        self.count = queues or tx_queue_count(sysfs, device) or 0
        self.bql = self.count > 0 and has_bql(sysfs, device)
        self.unit = unit if self.bql else None
        self._folder = device_folder(device)
        names = [f"{BQL_FOLDER}/{name}" for name in BQL_FILES] if self.bql else []
        room = raise_file_limit(self.count * (1 + len(names)))
        self._timeouts = [self._open(queue, "tx_timeout", room > queue) for queue in range(self.count)]
        room -= self.count
        self._bql = [
            tuple(self._open(queue, name, room > (queue + 1) * len(names)) for name in names) for queue in range(self.count)
        ]

    def _open(self, queue: int, name: str, keep: bool) -> int | str | None:
        """A descriptor, or the path where there is no room for one, or None where there is no such file."""
        path = f"{self._folder}/queues/tx-{queue}/{name}"
        if not keep:
            return path
        try:
            return os.open(path, os.O_RDONLY | os.O_CLOEXEC, dir_fd=self._sysfs)
        except OSError as error:
            return path if error.errno in (23, 24) else None  # ENFILE, EMFILE

    def close(self) -> None:
        files = [*self._timeouts, *(file for files in self._bql for file in files)]
        self._timeouts, self._bql, self.count = [], [], 0
        for file in files:
            if isinstance(file, int):
                os.close(file)

    def __enter__(self) -> QueueFiles:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _value(self, file: int | str | None) -> int | None:
        if isinstance(file, int):
            try:
                return int(os.pread(file, 32, 0))
            except (OSError, ValueError):  # ENODEV: the device or the queue is gone
                return None
        return read_number(self._sysfs, file) if file else None

    def tx_timeouts(self) -> list[int | None]:
        """Watchdog alarms of each queue since the device was made."""
        return list(map(self._value, self._timeouts))

    def read(self) -> tuple[QueueSample, ...]:
        """All queues, with the fields that sysfs has and None in the others."""
        value = self._value
        if not self.bql:
            return tuple(QueueSample(queue, tx_timeouts=value(file)) for queue, file in enumerate(self._timeouts))
        samples = []
        for queue, files in enumerate(self._bql):
            limit, low, high, hold, inflight, threshold, longest, stalls = map(value, files)
            samples.append(
                QueueSample(
                    queue,
                    unit=self.unit,
                    limit=limit,
                    limit_min=low,
                    limit_max=high,
                    hold_time_ms=hold,
                    inflight=inflight,
                    tx_timeouts=value(self._timeouts[queue]),
                    stall_threshold_ms=threshold,
                    stall_max_ms=None if longest is None else jiffies_to_ms(longest),
                    stall_count=stalls,
                )
            )
        return tuple(samples)


def raise_file_limit(wanted: int) -> int:
    """Raise this process's soft limit of open files so that ``wanted`` more fit, as far as the hard limit lets us.
    Returns how many may be opened."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    in_use = len(os.listdir("/proc/self/fd")) + FILES_KEPT_FREE
    if soft == resource.RLIM_INFINITY:
        return wanted
    target = in_use + wanted
    if target > soft:
        target = target if hard == resource.RLIM_INFINITY else min(target, hard)
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (target, hard))
            soft = target
    return max(0, soft - in_use)


def napi_settings(sysfs: int, device: str) -> dict[str, int | None]:
    """``threaded``, ``gro_flush_timeout`` (ns) and ``napi_defer_hard_irqs`` of a device."""
    names = ("threaded", "gro_flush_timeout", "napi_defer_hard_irqs")
    return {name: read_number(sysfs, f"{device_folder(device)}/{name}") for name in names}
