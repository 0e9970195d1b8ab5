"""The lab's side of the flood: starts the processes of flood.py, stops them, adds up what they sent."""

from __future__ import annotations

import json
import math
import subprocess
from dataclasses import dataclass
from typing import Any

from bqltop.lab import flood
from bqltop.lab.scope import NETNS_DIR, PYTHON, LabError, Scope, environment


@dataclass(frozen=True)
class FloodResult:
    """What a flood came to.

    sent: packets handed to the sender's qdisc, exactly (what the qdisc sent + dropped + still holds).
    errors: system calls that the kernel refused. seconds: from the first packet to the last, of the longest process.
    """

    sent: int
    errors: int
    seconds: float

    @property
    def pps(self) -> float:
        """Packets per second."""
        return self.sent / self.seconds if self.seconds else math.nan


class Flooders:
    """Running flood processes. options: those of flood.Flood, the same for each but for its ports."""

    def __init__(self, scope: Scope, netns: str, options: dict[str, Any], count: int) -> None:
        self.processes: list[subprocess.Popen] = []
        try:
            for number in range(count):
                ports = {"first_port": options["first_port"] + number * options["flows"]}
                self._spawn(scope, netns, json.dumps({**options, **ports}))
            for process in self.processes:
                self._line(process)  # "ready": its sockets are made
            for process in self.processes:
                process.stdin.write(b"g")
        except BaseException:
            self.kill()
            raise

    def _spawn(self, scope: Scope, netns: str, options: str) -> None:
        process = subprocess.Popen(
            [*PYTHON, flood.__file__, f"{NETNS_DIR}/{netns}", options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            cwd="/",
            env=environment(),
            start_new_session=True,  # Ctrl-C is for the program that shows the flood
        )
        self.processes.append(process)
        scope.adopt(process)

    @staticmethod
    def _line(process: subprocess.Popen) -> str:
        line = process.stdout.readline()
        if not line:
            last = process.stderr.read().decode(errors="replace").strip().rpartition("\n")[2]
            raise LabError(f"The flood process ended early: {last or 'killed'}.")
        return line.decode()

    def running(self) -> bool:
        """Whether any of them is still there."""
        return any(process.poll() is None for process in self.processes)

    def result(self, stop: bool) -> FloodResult:
        """Waits for all to end, telling them to first if `stop`, and adds up. Raises LabError when one died."""
        try:
            if stop:
                for process in self.processes:
                    if process.poll() is None:
                        try:
                            process.stdin.write(b"s")
                        except BrokenPipeError:
                            continue  # it ended by itself in this moment; its result is in the pipe
            results = [json.loads(self._line(process)) for process in self.processes]
        finally:
            self.kill()
        return FloodResult(
            sent=sum(result["sent"] for result in results),
            errors=sum(result["errors"] for result in results),
            seconds=max(result["seconds"] for result in results),
        )

    def kill(self) -> None:
        """Ends what is left of them; each is our own child, so its number is still its own."""
        for process in self.processes:
            process.stdin.close()
            try:
                process.wait(timeout=1)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            process.stdout.close()
            process.stderr.close()
