"""What came out, per kernel and test, and the one summary of it."""

from dataclasses import dataclass, field

PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"

TRACEBACK_LINES = 40
"""Lines of a failure's traceback that are shown again at the end: pytest puts the error last."""


@dataclass(frozen=True)
class TestResult:
    """One test on one kernel."""

    __test__ = False  # not a test class, whatever pytest makes of the name

    test: str
    """pytest's node id, without the folder that all of them share."""
    outcome: str
    seconds: float = 0.0
    detail: str = ""
    """Why it was skipped, or the failure's traceback."""

    def reason(self) -> str:
        """The detail in one line: of a traceback, the line that names the error."""
        lines = [line.strip() for line in self.detail.splitlines() if line.strip()]
        errors = [line[1:].strip() for line in lines if line.startswith("E ")]
        return (errors or lines or [""])[0]

    def line(self, kernel: str) -> str:
        """One line for the summary."""
        text = f"{self.outcome:<8} {kernel:<24} {self.test}"
        if self.outcome != PASSED:
            return f"{text}: {self.reason()}"
        return f"{text} ({self.seconds:.1f} s)"


@dataclass
class KernelResult:
    """All tests on one kernel."""

    name: str
    release: str | None = None
    seconds: float = 0.0
    boots: int = 0
    tests: list[TestResult] = field(default_factory=list)
    deaths: list[str] = field(default_factory=list)
    """Where the guest died and was given a second chance, with the cause."""
    unavailable: str | None = None
    """Why the kernel could not be had."""
    required: bool = False
    """Somebody asked for this very kernel: not having it is a failure."""

    @property
    def title(self) -> str:
        return self.release or self.name

    def count(self, outcome: str) -> int:
        """How many tests ended so; a kernel that could not be had counts once."""
        if self.unavailable:
            return int(outcome == (FAILED if self.required else SKIPPED))
        return sum(result.outcome == outcome for result in self.tests)

    def heading(self) -> str:
        """One line about the kernel itself."""
        if self.unavailable:
            return f"kernel {self.name}: could not be had: {self.unavailable}"
        counts = ", ".join(f"{self.count(outcome)} {outcome}" for outcome in (PASSED, FAILED, SKIPPED))
        boots = "" if self.boots == 1 else f" in {self.boots} boots"
        return f"kernel {self.name}: {self.release or 'release unknown'}: {counts}, {self.seconds:.0f} s{boots}"


@dataclass
class Summary:
    """The whole matrix."""

    kernels: list[KernelResult] = field(default_factory=list)

    def count(self, outcome: str) -> int:
        return sum(kernel.count(outcome) for kernel in self.kernels)

    @property
    def failed(self) -> bool:
        """Something failed, or not one kernel was there to run a test on."""
        return self.count(FAILED) > 0 or self.count(PASSED) == 0

    def never_run(self) -> list[str]:
        """Tests that every kernel skipped: they prove nothing today, and somebody should know."""
        results = [result for kernel in self.kernels for result in kernel.tests]
        ran = {result.test for result in results if result.outcome != SKIPPED}
        return sorted({result.test for result in results} - ran)

    def failures(self) -> list[str]:
        """Every failure with its traceback, for a place where only the end of a long output is seen."""
        text = []
        for kernel in self.kernels:
            if kernel.unavailable and kernel.required:
                text.append(kernel.heading())
            for result in kernel.tests:
                if result.outcome == FAILED:
                    text.append(result.line(kernel.title))
                    text += ["    " + line for line in result.detail.splitlines()[-TRACEBACK_LINES:]]
        return text

    def lines(self) -> list[str]:
        """The summary, ending with the plain closing line."""
        text = []
        for kernel in self.kernels:
            text.append(kernel.heading())
            text += ["  " + result.line(kernel.title) for result in kernel.tests]
            text += [f"  the guest died once, and the test was run again: {death}" for death in kernel.deaths]
        text += [f"not run on any of these kernels: {test}" for test in self.never_run()]
        counts = ", ".join(f"{self.count(outcome)} {outcome}" for outcome in (PASSED, FAILED, SKIPPED))
        return [*text, counts]
