"""Running the tests of tests/vm on kernels, one boot each."""

import shlex
from dataclasses import dataclass
from pathlib import Path

from .kernels import Kernel, Source
from .machine import Machine, Outcome, Settings
from .summary import FAILED, KernelResult, Summary, TestResult
from .tools import Unavailable

MOST_BOOTS = 4
"""A guest that dies in a test is booted again for the tests behind it, but not for ever."""

CI_ORDER = ("vethbql", "newest", "trixie", "bookworm")
"""What CI would rather run when it can run one: the kernel with BQL everywhere, then the newest."""

EXCERPT = 40
"""Lines of pytest's output that are shown of a guest that got stuck: where the test hung is among them."""

NO_TESTS_COLLECTED = 5
"""pytest's exit status when -k left nothing."""


@dataclass(frozen=True)
class Options:
    """What to run and how."""

    repository: Path
    python: Path
    settings: Settings
    expression: str | None = None
    refresh: bool = False


class KernelRun:
    """All tests on one kernel."""

    def __init__(self, kernel: Kernel, options: Options, result: KernelResult):
        self.kernel = kernel
        self.options = options
        self.result = result
        self.running: str | None = None
        self.output: list[str] = []
        self.died_in: set[str] = set()

    def run(self) -> None:
        """
        Boot until every test has been run, or there is no point any more.

        A test in which the guest dies is run once more: emulation crashes a kernel now and then (QEMU 7.2, code that is
        patched while it runs). The summary tells of it, so that a crash which bqltop causes does not pass unseen.
        """
        while self.result.boots < MOST_BOOTS:
            done_before = len(self.result.tests)
            outcome = self._boot()
            if not outcome.trouble:
                clean = outcome.status in (0, 1, NO_TESTS_COLLECTED)
                if not clean and not self.result.count(FAILED):
                    self._note(TestResult("pytest", FAILED, detail="\n".join(self.output[-20:])))
                return
            where = self.running or "boot"
            excerpt = ["the console's last lines:", *outcome.console, "pytest's last lines:", *self.output[-EXCERPT:]]
            for line in [f"{where}: {outcome.trouble}", *excerpt]:
                print(f"[{self.result.name}] {line}", flush=True)
            if outcome.died and where not in self.died_in:
                self.died_in.add(where)
                self.result.deaths.append(f"{where}: {outcome.trouble}")
                continue
            self._note(TestResult(where, FAILED, detail=outcome.trouble))
            if len(self.result.tests) == done_before + 1 and not self.running:
                return
        self._note(TestResult("the tests behind it", FAILED, detail=f"not run: {MOST_BOOTS} boots ended early"))

    def _boot(self) -> Outcome:
        self.running = None
        self.output.clear()
        self.result.boots += 1
        machine = Machine(self.kernel, self.options.repository, self.options.settings)
        outcome = machine.run(self._script(), self.output.append, self._take_report)
        self.result.seconds += outcome.seconds
        return outcome

    def _script(self) -> str:
        """What the guest runs: pytest on this folder, with the project's own pytest options left aside."""
        # a hung test shows where it hangs before the machine is given up
        dump_after = max(10, int(self.options.settings.silence) - 30)
        command = [
            str(self.options.python),
            "-m",
            "pytest",
            "tests/vm",
            "--ignore=tests/vm/selftest",
            "-q",
            "-p",
            "no:cacheprovider",
            "--continue-on-collection-errors",
            "-o",
            "addopts=",
            "-o",
            "norecursedirs=",
            "-o",
            f"faulthandler_timeout={dump_after}",
        ]
        if self.options.expression:
            command += ["-k", self.options.expression]
        done = "\n".join(result.test for result in self.result.tests)
        return (
            f"export BQLTOP_VM_GUEST={shlex.quote(self.kernel.name)} BQLTOP_VM_DONE={shlex.quote(done)}\n"
            f"exec {shlex.join(command)}"
        )

    def _take_report(self, report: dict) -> None:
        if report["event"] == "boot":
            self.result.release = report["release"]
        elif report["event"] == "start":
            self.running = report["test"]
        elif report["event"] == "result":
            self.running = None
            self._note(TestResult(report["test"], report["outcome"], report["seconds"], report["detail"]))

    def _note(self, result: TestResult) -> None:
        self.result.tests.append(result)
        print(f"[{self.result.name}] {result.line(self.result.title)}", flush=True)
        if result.outcome == FAILED and result.detail:
            print("\n".join("    " + line for line in result.detail.splitlines()), flush=True)


def run_tests(sources: list[Source], options: Options, required: bool) -> Summary:
    """Run the tests on each kernel; `required`: the kernels were asked for by name, so not having one is a failure."""
    summary = Summary()
    for source in sources:
        result = KernelResult(source.name, required=required)
        summary.kernels.append(result)
        try:
            kernel = source.get(options.refresh)
            print(f"[{source.name}] booting {kernel.image}", flush=True)
            KernelRun(kernel, options, result).run()
        except Unavailable as reason:
            result.unavailable = str(reason)
            print(result.heading(), flush=True)
    return summary


def run_shell(sources: list[Source], options: Options, command: str) -> int:
    """Run one shell command on each kernel, pass its output on, and return the worst exit status."""
    worst = 0
    for source in sources:
        prefix = f"[{source.name}] " if len(sources) > 1 else ""
        try:
            machine = Machine(source.get(options.refresh), options.repository, options.settings)
            outcome = machine.run(command, lambda line, prefix=prefix: print(f"{prefix}{line}", flush=True), lambda report: None)
        except Unavailable as reason:
            print(f"kernel {source.name}: could not be had: {reason}", flush=True)
            worst = max(worst, 1)
            continue
        if outcome.trouble:
            print("\n".join([f"kernel {source.name}: {outcome.trouble}", *outcome.console]), flush=True)
        worst = max(worst, 125 if outcome.status is None else outcome.status)
    return worst


def pick_for_ci(sources: list[Source]) -> list[Source]:
    """The one kernel that CI runs: the first in CI_ORDER that can be had. Says what it passed over."""
    by_name = {source.name: source for source in sources}
    order = [by_name[name] for name in CI_ORDER if name in by_name] or sources
    for source in order:
        try:
            source.get()
        except Unavailable as reason:
            print(f"kernel {source.name}: could not be had: {reason}", flush=True)
            continue
        print(f"CI runs one kernel: {source.name} ({source.describe()})", flush=True)
        return [source]
    return []
