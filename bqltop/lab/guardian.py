"""The process that tidies up after a lab, whatever happens to the process that built it.

Run by path (`python -I -S guardian.py PARENT_PID`), in a session of its own, so that Ctrl-C, a closed terminal or
`kill -9` of the parent do not reach it. On standard input come lines that say what exists:

    netns NAME            a namespace to delete
    link NETNS DEVICE     a device to delete before that (deleting a namespace destroys its devices only some time later)
    pid PID START         a process to end; START is field 22 of /proc/PID/stat, so a number used again is left alone
    end                   the same as the end of standard input, which a forked child of the parent might keep open

When standard input ends, or the parent is gone, everything named is removed, and so is the guardian. An orderly end takes the
same way, so it is the one that every run exercises.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys

PATIENCE = 2.0  # seconds that a process gets between SIGTERM and SIGKILL


def start_time(pid: int) -> str:
    """Field 22 of /proc/PID/stat (clock ticks since boot). Raises OSError when there is no such process."""
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
        return file.read().rpartition(")")[2].split()[19]


class Possessions:
    """What has been named so far."""

    def __init__(self) -> None:
        self.pidfds: list[int] = []
        self.links: list[tuple[str, str]] = []
        self.namespaces: list[str] = []

    def add(self, line: str) -> None:
        """Takes one line of the protocol."""
        kind, *words = line.split()
        if kind == "netns":
            self.namespaces.append(words[0])
        elif kind == "link":
            self.links.append((words[0], words[1]))
        elif kind == "pid":
            self.add_process(int(words[0]), words[1])

    def add_process(self, pid: int, start: str) -> None:
        """Holds the process by a pidfd, which never comes to mean another one."""
        try:
            pidfd = os.pidfd_open(pid)
            if start_time(pid) == start:
                self.pidfds.append(pidfd)
            else:
                os.close(pidfd)
        except OSError:
            pass  # it has ended already

    def end_processes(self) -> None:
        """SIGTERM, then SIGKILL for what is still there."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            for pidfd in self.pidfds:
                try:
                    signal.pidfd_send_signal(pidfd, number)
                except ProcessLookupError:
                    continue
                select.select([pidfd], [], [], PATIENCE)

    def remove(self) -> None:
        """Removes everything; what is gone already is no error."""
        self.end_processes()
        for netns, device in self.links:
            ip("-n", netns, "link", "del", device)
        for netns in self.namespaces:
            ip("netns", "del", netns)


def ip(*words: str) -> None:
    """Runs iproute2's `ip` in silence."""
    subprocess.run(["ip", *words], stdin=subprocess.DEVNULL, check=False)


def listen(possessions: Possessions, parent: int) -> None:
    """Reads lines until standard input ends or the process `parent` is gone."""
    try:
        pidfd = os.pidfd_open(parent)
    except OSError:
        pidfd = None
    orphaned = pidfd is None or os.getppid() != parent
    rest = b""
    while True:
        # Even with the parent gone, what it wrote before is still in the pipe and has to be read.
        readable, _, _ = select.select([0] if orphaned else [0, pidfd], [], [], 0 if orphaned else None)
        if 0 in readable:
            data = os.read(0, 65536)
            if not data:
                return
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                if line == b"end":
                    return
                possessions.add(line.decode())
        elif orphaned:
            return
        else:
            orphaned = True


def stop(_number: int, _frame: object) -> None:
    """SIGTERM ends the listening; what was named is removed all the same."""
    raise SystemExit


def main() -> None:
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, stop)
    possessions = Possessions()
    try:
        listen(possessions, int(sys.argv[1]))
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        possessions.remove()


if __name__ == "__main__":
    main()
