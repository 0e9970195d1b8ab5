"""What the screen costs: share of one core at 10 Hz, over 10 s, on a pseudo-terminal of a given size.

    .venv/bin/python -m benchmarks.screen [--seconds S]

The samples are made beforehand, so that what is measured is taking them, drawing and writing to the terminal; a live
device adds the sampler's own share (benchmarks of the sampler). Times are the kernel's (utime + stime).
"""

from __future__ import annotations

import argparse
import fcntl
import os
import pty
import select
import signal
import struct
import sys
import termios
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
CASES = (
    # name, scenario, queues, columns, rows, budget (share of a core; None: no promise)
    ("1 queue, 120x40", "veth", 1, 120, 40, 0.10),
    ("1 queue, 80x24", "packets", 1, 80, 24, None),
    ("64 queues, 200x50", "packets", 64, 200, 50, 0.15),
    ("64 queues unfolded, 200x50", "busy", 64, 200, 50, 0.15),
    ("256 queues, 200x50", "packets", 256, 200, 50, None),
)
PREPARED = 300


def child(scenario: str, queues: int) -> None:
    """Runs the application in this process; never returns."""
    sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "tui")]
    from fake_source import FakeSource

    from bqltop.tui import BqltopApp, run

    class Prepared(FakeSource):
        """Plays samples made beforehand."""

        def prepare(self) -> None:
            self._ready = iter([FakeSource.sample(self) for _ in range(PREPARED)])

        def sample(self):
            return next(self._ready)

    source = Prepared(scenario, queues)
    source.prepare()
    os._exit(run(BqltopApp(source)))


def measure(case: tuple, seconds: float) -> tuple[float, int]:
    """(share of a core, bytes a second to the terminal) of one case."""
    _, scenario, queues, columns, rows, _ = case
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ["TERM"], os.environ["COLORTERM"] = "xterm-256color", "truecolor"
        try:
            child(scenario, queues)
        finally:
            os._exit(1)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    try:
        _drain(terminal, 4.0)
        before, started = cpu_seconds(pid), time.monotonic()
        written = _drain(terminal, seconds)
        share = (cpu_seconds(pid) - before) / (time.monotonic() - started)
    finally:
        os.kill(pid, signal.SIGTERM)
        _drain(terminal, 1.0)
        os.waitpid(pid, 0)
        os.close(terminal)
    return share, round(written / seconds)


def cpu_seconds(pid: int) -> float:
    """User and system time of a process so far (proc(5), fields 14 and 15 of stat)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _drain(terminal: int, seconds: float) -> int:
    """Read what is drawn, as a terminal does; how many bytes."""
    end, total = time.monotonic() + seconds, 0
    while (left := end - time.monotonic()) > 0:
        if select.select([terminal], [], [], left)[0]:
            try:
                total += len(os.read(terminal, 65536))
            except OSError:
                break
    return total


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=10.0, help="how long each case is measured")
    arguments = parser.parse_args()
    print(f"{'screen at 10 Hz':<28} {'of a core':>10} {'budget':>8} {'to the terminal':>16}")
    for case in CASES:
        share, rate = measure(case, arguments.seconds)
        budget = f"{case[5]:.0%}" if case[5] else "-"
        print(f"{case[0]:<28} {share:>10.1%} {budget:>8} {rate / 1000:>11.0f} kB/s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
