"""A program in a child process that has a pty of its own as its controlling terminal."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import termios
import time
from collections.abc import Mapping, Sequence

DRAWN = b"TX queues"
"""On the screen once there is a sample."""
LEFT_ALTERNATE, CURSOR_SHOWN = b"\x1b[?1049l", b"\x1b[?25h"
PATIENCE_S = 30.0


class OnAPty:
    """``output`` is all it has written, ``before`` the terminal's modes when it began."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], rows: int, columns: int) -> None:
        self.output = b""
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.execve(command[0], command, os.environ | {"TERM": "xterm-256color"} | environment)
        self.before = termios.tcgetattr(self.terminal)
        fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read(self, seconds: float) -> None:
        """Take what it writes within this time."""
        if self.terminal >= 0 and select.select([self.terminal], [], [], seconds)[0]:
            try:
                self.output += os.read(self.terminal, 65536)
            except OSError:  # nobody has it open on the other side any more
                time.sleep(seconds)

    def wait_for(self, text: bytes) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while text not in self.output:
            assert time.monotonic() < deadline, f"{text!r} did not come; last: {self.output[-500:]!r}"
            self.read(0.1)

    def type(self, keys: bytes) -> None:
        os.write(self.terminal, keys)

    def status(self) -> int:
        """The exit status (negative: the signal that killed it)."""
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            done, status = os.waitpid(self.pid, os.WNOHANG)
            if done:
                self.pid = 0
                self.read(0.1)
                return os.waitstatus_to_exitcode(status)
            self.read(0.05)
            if self.terminal < 0:
                time.sleep(0.05)
        raise AssertionError(f"it did not end; last: {self.output[-500:]!r}")

    def hang_up(self) -> None:
        os.close(self.terminal)
        self.terminal = -1

    def end(self) -> None:
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        if self.terminal >= 0:
            os.close(self.terminal)
