"""Standard streams that are full, closed or read by nobody: one line at most, and never a traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

RECORDING = Path(__file__).parents[1] / "output" / "recordings" / "schema-1.jsonl.gz"
COMMANDS = ["--help", "--version", "--text", "tune lo", "tune lo --json", "restore", "journal", f"replay --csv {RECORDING}",
            f"report {RECORDING}", "lo --json --once --no-bpf"]  # fmt: skip


@pytest.fixture
def shell(tmp_path):
    """(exit status, standard output, standard error) of ``bqltop WORDS REDIRECTION``."""

    def run(words: str, redirection: str, **environment) -> tuple[int, str, str]:
        line = f"{sys.executable} -X dev -W error::ResourceWarning -m bqltop {words} {redirection}"
        done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60,
                              env=os.environ | {"BQLTOP_STATE_DIR": str(tmp_path)} | environment)  # fmt: skip
        return done.returncode, done.stdout, done.stderr

    return run


@pytest.mark.parametrize("words", COMMANDS)
@pytest.mark.parametrize(("redirection", "why"), [(">/dev/full", "No space left on device"), (">&-", "Bad file descriptor")])
def test_output_that_cannot_be_written_is_one_line_and_status_2(shell, words, redirection, why):
    assert shell(words, redirection) == (2, "", f"bqltop: cannot write the output: {why}\n")


@pytest.mark.parametrize("words", COMMANDS)
def test_a_reader_that_has_seen_enough_is_nobodys_fault(shell, words):
    assert shell(words, "| true; exit ${PIPESTATUS[0]}") == (0, "", "")


@pytest.mark.parametrize("words", COMMANDS)
@pytest.mark.parametrize("redirection", ["2>/dev/full", "2>&-", "<&-", "<&- 2>&-"])
def test_nobody_needs_standard_input_or_error(shell, words, redirection):
    status, out, err = shell(words, redirection)
    assert (status, err) == (0, "")
    assert out


def test_a_fault_without_standard_error_is_still_status_2(shell):
    for redirection in ("2>/dev/full", "2>&-", ">&- 2>&- <&-"):
        assert shell("tune no-such-device", redirection) == (2, "", "")


def test_what_the_encoding_lacks_is_an_escape(shell):
    status, out, err = shell("restore é1", "", PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert (status, err) == (0, "")
    assert out == "nothing to restore on \\xe9" + "1\n"
    assert "\\xe9" in shell("tune é1", "", PYTHONIOENCODING="ascii", PYTHONUTF8="0")[2]
