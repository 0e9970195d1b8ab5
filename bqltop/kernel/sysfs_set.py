"""The settings of a device in its namespace's sysfs: read, write, and may it be written.

Reading for the sampler is kernel/sysfs.py's business; this is for values that a person changes, one at a time.
"""

from __future__ import annotations

import os

from bqltop.kernel import netns
from bqltop.model import Namespace


class SysfsSettings:
    """``class/net`` of one namespace. Paths are relative to the device (``queues/tx-0/byte_queue_limits/limit_min``).

    Every method raises OSError with the errno of the kernel; a device that went away is ENOENT or ENODEV.
    """

    def __init__(self, ns: Namespace | None = None):
        self._root = netns.sysfs_dir(ns or netns.current())

    def close(self) -> None:
        os.close(self._root)

    def read(self, device: str, path: str) -> str:
        """The file's text without the line's end."""
        fd = self._open(device, path, os.O_RDONLY)
        try:
            return os.fsdecode(os.read(fd, 4096).rstrip(b"\n"))
        finally:
            os.close(fd)

    def write(self, device: str, path: str, value: str) -> None:
        """Write the value in one write, as ``echo`` does."""
        fd = self._open(device, path, os.O_WRONLY)
        try:
            os.write(fd, os.fsencode(value) + b"\n")
        finally:
            os.close(fd)

    def may_write(self, device: str, path: str) -> None:
        """Raise the OSError that a write would meet at open (EACCES, EROFS): opening a sysfs file changes nothing."""
        os.close(self._open(device, path, os.O_WRONLY))

    def entries(self, device: str, path: str) -> list[str]:
        """Names in a folder of the device; empty when there is no such folder."""
        try:
            fd = self._open(device, path, os.O_RDONLY | os.O_DIRECTORY)
        except FileNotFoundError:
            return []
        try:
            return os.listdir(fd)
        finally:
            os.close(fd)

    def tx_queues(self, device: str) -> list[int]:
        """Indexes of the TX queues in use, in order."""
        names = self.entries(device, "queues")
        return sorted(int(name[3:]) for name in names if name.startswith("tx-"))

    def identity(self, device: str) -> tuple[int, int]:
        """(interface index, kernfs inode of the device's folder).

        The inode stays through a rename and is never given out twice in one uptime (kernfs hands the numbers out
        cyclically, fs/kernfs/dir.c), so a device re-created under the same name and index is told apart.
        """
        index = int(self.read(device, "ifindex"))
        return index, os.stat(f"class/net/{device}", dir_fd=self._root).st_ino

    def devices(self) -> list[str]:
        """Names of the namespace's devices."""
        fd = os.open("class/net", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=self._root)
        try:
            return os.listdir(fd)
        finally:
            os.close(fd)

    def _open(self, device: str, path: str, flags: int) -> int:
        return os.open(f"class/net/{device}/{path}", flags | os.O_CLOEXEC, dir_fd=self._root)
