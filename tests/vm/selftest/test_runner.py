"""Kernels named by hand, the summary's arithmetic, a guest that dies: everything that needs no machine."""

import lzma
from pathlib import Path

import pytest

from ..runner import kernels, matrix
from ..runner.image import write_bootable
from ..runner.machine import Outcome, Settings
from ..runner.summary import FAILED, PASSED, SKIPPED, KernelResult, Summary, TestResult
from ..runner.tools import Unavailable

OPTIONS = matrix.Options(Path("/repository"), Path("/repository/.venv/bin/python"), Settings())


def result(test: str, outcome: str, detail: str = "") -> TestResult:
    return TestResult(test, outcome, 1.0, detail)


def test_images_named_by_hand_keep_their_names():
    found = kernels.parse_images("mine=/tmp/a/bzImage, /tmp/7.3.4/vmlinux,/tmp/odd.elf", Path("/cache"))
    assert [(source.name, str(source.path)) for source in found] == [
        ("mine", "/tmp/a/bzImage"),
        ("7.3.4", "/tmp/7.3.4/vmlinux"),
        ("odd", "/tmp/odd.elf"),
    ]


def test_the_environment_replaces_the_matrix(monkeypatch):
    monkeypatch.setenv(kernels.ENVIRONMENT, "mine=/tmp/vmlinux")
    assert [source.name for source in kernels.sources(Path("/repository"))] == ["mine"]


def test_an_unknown_kernel_name_lists_the_known_ones():
    with pytest.raises(ValueError, match="no kernel called beta; there are: mine"):
        kernels.select(kernels.parse_images("mine=/x", Path("/cache")), ["beta"])


def test_a_missing_image_says_which_file(tmp_path):
    with pytest.raises(Unavailable, match="gone is not there"):
        kernels.ImageSource("gone", tmp_path / "gone", tmp_path).get()


def test_an_image_packed_with_xz_is_unpacked_into_the_cache(tmp_path):
    packed = tmp_path / "vmlinux-1.xz"
    packed.write_bytes(lzma.compress(b"\x7fELF kernel"))
    kernel = kernels.ImageSource("one", packed, tmp_path / "cache").get()
    assert kernel.image.read_bytes() == b"\x7fELF kernel"
    assert kernel.image.is_relative_to(tmp_path / "cache")


def test_the_elf_image_is_taken_out_of_a_compressed_one(tmp_path):
    (tmp_path / "vmlinuz").write_bytes(b"MZ boot code" + lzma.compress(b"\x7fELF kernel") + b"trailer")
    write_bootable(tmp_path / "vmlinuz", tmp_path / "vmlinux")
    assert (tmp_path / "vmlinux").read_bytes() == b"\x7fELF kernel"


def test_an_image_packed_in_an_unknown_way_is_booted_as_it_is(tmp_path):
    (tmp_path / "vmlinuz").write_bytes(b"MZ something else")
    write_bootable(tmp_path / "vmlinuz", tmp_path / "vmlinux")
    assert (tmp_path / "vmlinux").read_bytes() == b"MZ something else"


def test_the_summary_ends_with_plain_counts():
    tests = [result("a", PASSED), result("b", FAILED, "x\nE   assert 1 == 2"), result("c", SKIPPED, "no BQL")]
    summary = Summary([KernelResult("one", "7.3", 9.0, 1, tests), KernelResult("two", unavailable="no mirror")])
    lines = summary.lines()
    assert lines[-1] == "1 passed, 1 failed, 2 skipped"
    assert "kernel two: could not be had: no mirror" in lines
    assert any(line.endswith("b: assert 1 == 2") for line in lines)
    assert summary.failed


def test_failures_are_shown_again_with_the_end_of_their_tracebacks():
    long = "\n".join([*(f"line {number}" for number in range(100)), "E   assert 510 == 511"])
    summary = Summary([KernelResult("one", "7.3", 9.0, 1, [result("a", PASSED), result("b", FAILED, long)])])
    lines = summary.failures()
    assert lines[0].endswith("b: assert 510 == 511")
    assert "7.3" in lines[0]
    assert lines[-1] == "    E   assert 510 == 511"
    assert "    line 99" in lines
    assert "    line 1" not in lines
    assert not any("passed" in line for line in lines)


def test_a_kernel_asked_for_by_name_and_not_had_is_a_failure():
    assert KernelResult("one", unavailable="no mirror", required=True).count(FAILED) == 1
    assert KernelResult("one", unavailable="no mirror").count(FAILED) == 0


def test_not_one_kernel_is_a_failure():
    assert Summary([KernelResult("one", unavailable="no mirror")]).failed


def test_tests_that_no_kernel_ran_are_named():
    kernel = KernelResult("one", "7.3", 1.0, 1, [result("a", PASSED), result("b", SKIPPED, "no BQL")])
    assert Summary([kernel]).never_run() == ["b"]


def machine_that_dies(times: int):
    """Stands in for Machine: test b kills the guest so many times, and passes after that."""

    class DyingMachine:
        boots = 0

        def __init__(self, kernel, folder, settings):
            pass

        def run(self, script, on_output, on_report):
            type(self).boots += 1
            done = script.split("BQLTOP_VM_DONE=")[1].splitlines()
            on_report({"event": "boot", "release": "7.3"})
            for test in "abc":
                if any(test in line.strip("'") for line in done[:-1]):
                    continue
                on_report({"event": "start", "test": test})
                if test == "b" and self.boots <= times:
                    return Outcome(trouble="the guest died", died=True, console=["Kernel panic"])
                on_report({"event": "result", "test": test, "outcome": PASSED, "seconds": 1, "detail": ""})
            return Outcome(status=0)

    return DyingMachine


def run_with(machine, monkeypatch) -> KernelResult:
    monkeypatch.setattr(matrix, "Machine", machine)
    found = KernelResult("one")
    matrix.KernelRun(kernels.Kernel("one", Path("vmlinux"), None), OPTIONS, found).run()
    return found


def test_a_test_in_which_the_guest_dies_is_run_once_more_and_told(monkeypatch, capsys):
    found = run_with(machine_that_dies(1), monkeypatch)
    assert [(test.test, test.outcome) for test in found.tests] == [("a", PASSED), ("b", PASSED), ("c", PASSED)]
    assert found.boots == 2
    assert "Kernel panic" in capsys.readouterr().out
    assert "  the guest died once, and the test was run again: b: the guest died" in Summary([found]).lines()


def test_a_guest_that_dies_twice_in_a_test_fails_it_and_is_booted_for_the_rest(monkeypatch):
    found = run_with(machine_that_dies(2), monkeypatch)
    assert [(test.test, test.outcome) for test in found.tests] == [("a", PASSED), ("b", FAILED), ("c", PASSED)]
    assert found.boots == 3
