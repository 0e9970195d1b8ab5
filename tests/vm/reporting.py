"""Tells the host what becomes of each test, as it happens: one JSON object a line through a virtio port."""

import json
import time

import pytest

FOLDER = "tests/vm/"


def short(node_id: str) -> str:
    """A node id without the folder that all share."""
    return node_id.removeprefix(FOLDER)


class Reporter:
    """A pytest plugin. `done` are tests of an earlier boot of the same kernel, which are not run again."""

    def __init__(self, port: str, done: list[str]):
        self.port = open(port, "w")  # noqa: SIM115  (kept open for as long as pytest runs)
        self.done = set(done)
        self.started = 0.0

    def say(self, **report) -> None:
        self.port.write(json.dumps(report) + "\n")
        self.port.flush()

    def pytest_collection_modifyitems(self, config, items):
        again = [item for item in items if short(item.nodeid) in self.done]
        if again:
            items[:] = [item for item in items if item not in again]
            config.hook.pytest_deselected(items=again)

    def pytest_collectreport(self, report):
        if report.failed:
            self.result(report.nodeid, "failed", 0.0, str(report.longrepr))

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logstart(self, nodeid):
        self.started = time.monotonic()
        self.say(event="start", test=short(nodeid))

    def pytest_runtest_logreport(self, report):
        # a test ends with its call; set-up and tear-down speak up only when they end it or break something
        if report.when == "call" or not report.passed:
            detail = self.detail(report)
            if report.when == "teardown" and report.failed:
                detail = "in the clean-up: " + detail
            self.result(report.nodeid, report.outcome, time.monotonic() - self.started, detail)

    @staticmethod
    def detail(report) -> str:
        """The reason of a skip, the traceback of a failure."""
        if report.skipped and isinstance(report.longrepr, tuple):
            return report.longrepr[2].removeprefix("Skipped: ")
        if report.failed:
            captured = "".join(f"\n--- {title}\n{text}" for title, text in report.sections if text.strip())
            return str(report.longrepr) + captured[-4000:]
        return ""

    def result(self, node_id: str, outcome: str, seconds: float, detail: str) -> None:
        self.say(event="result", test=short(node_id), outcome=outcome, seconds=seconds, detail=detail)
