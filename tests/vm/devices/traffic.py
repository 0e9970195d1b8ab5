"""A UDP flood in a process of its own."""

import json
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

FLOOD = Path(__file__).resolve().parents[3] / "bqltop/lab/flood.py"


class Flood:
    """bqltop's own flood (bqltop/lab/flood.py), run by path; `stop` returns what it counted."""

    def __init__(self, address: str, netns: str | None = None, **options):
        settings = {
            "address": address,
            "first_port": 9000,
            "flows": 1,
            "packet_size": 1000,
            "burst": 0,
            "pause_ms": 0,
            "pps": 0,
            "seconds": None,
        } | options
        path = f"/run/netns/{netns}" if netns else "/proc/self/ns/net"
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(FLOOD), path, json.dumps(settings)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout.readline() == "ready\n", "the flood did not start"
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def stop(self) -> dict:
        """End the flood: {"sent": packets, "errors": failed calls, "seconds": time}."""
        self.process.stdin.close()
        answer = self.process.stdout.readline()
        self.process.wait(30)
        return json.loads(answer) if answer else {}


@contextmanager
def flood(address: str, netns: str | None = None, **options):
    """A flood for as long as the block lasts."""
    running = Flood(address, netns, **options)
    try:
        yield running
    finally:
        if running.process.poll() is None:
            running.stop()
