"""What a person types, and what comes of it, without a device."""

from __future__ import annotations

import re
from importlib import import_module

import pytest

from bqltop import __version__
from bqltop.cli import COMMANDS, Fault, main


def said(capsys, *words: str) -> tuple[int, str, str]:
    """(exit status, standard output, standard error) of a command line."""
    try:
        status = main(words)
    except SystemExit as left:
        status = left.code
    out, err = capsys.readouterr()
    return status, out, err


@pytest.mark.parametrize(
    ("words", "telling"),
    [
        ([], "no terminal"),
        (["veth0", "--interval", "0"], "0.02"),
        (["veth0", "--interval", "soon"], "'soon' is not a number of seconds from 0.02 to 60"),
        (["veth0", "--interval", "nan"], "'nan'"),
        (["veth0", "--interval", "inf"], "'inf'"),
        (["veth0", "--json", "--count", "0"], "'0' is not a number of 1 or more"),
        (["veth0", "--json", "--count", "-1"], "--count"),
        (["veth0", "--json", "--count", "²"], "'²' is not a number"),
        (["veth0", "--json", "--csv"], "not allowed with"),
        (["veth0", "--no-such-option"], "--no-such-option"),
        (["demo", "--queues", "many"], "'many'"),
        (["veth0", "--once"], "--json"),
        (["veth0", "--count", "3"], "--json"),
        (["veth0", "--interval", "١"], "'١' is not a number of seconds"),
        (["veth0", "--interval", "1_0"], "'1_0' is not a number of seconds"),
        (["veth0", "--record-age", "١m"], "'١m' is no time"),
        (["tune", "veth0", "--trial", "١"], "'١' is not a number of seconds"),
        (["sweep", "veth0", "mtu=1500", "--seconds", "1_0"], "'1_0' is not a number of seconds"),
        (["replay", "x.gz", "--speed", "٣x"], "'٣x' is not a speed"),
        (["export", "--prometheus", "no-such-device", "--interval", "nan"], "'nan' is not a number of seconds"),
        (["export", "--prometheus", "no-such-device", "--interval", "-1"], "--interval"),
        (["export", "--prometheus", "no-such-device"], "there is no device"),
        (["no\nsuch", "--text", "--once"], "no\\nsuch"),
        (["veth0", "--text", "--netns", "no\x1b[31msuch"], "no\\x1b[31msuch"),
        (["replay", "--text", "no\nsuch"], "no\\nsuch"),
        (["report", "no\nsuch"], "no\\nsuch"),
        (["veth0", "--no\nsuch"], "no\\nsuch"),
        (["replay", "--text", ""], "cannot read"),
        (["sweep", "--resume", ""], "Is a directory"),
        (["lo", "--text", "--once", "--probe", ""], "is not an IPv4 or IPv6 address"),
    ],
    ids=lambda given: ascii(" ".join(given)) if isinstance(given, list) else ascii(given),
)
def test_wrong_input_is_one_line_and_status_2(capsys, words, telling):
    status, out, err = said(capsys, *words)
    assert (status, out) == (2, "")
    assert telling in err
    assert err.startswith("bqltop: ")
    assert err.count("\n") == 1


def test_the_version(capsys):
    assert said(capsys, "--version") == (0, f"bqltop {__version__}\n", "")


def test_help_lists_every_command(capsys):
    status, out, _ = said(capsys, "--help")
    assert status == 0
    for name in COMMANDS:
        assert re.search(rf"^  bqltop {name} ", out, re.MULTILINE)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_and_can_be_run(capsys, name):
    module = import_module(COMMANDS[name][0])
    assert module.__doc__
    assert callable(module.configure)
    assert callable(module.run)
    status, out, err = said(capsys, name, "--help")
    assert (status, err) == (0, "")
    assert out.startswith("usage: bqltop")


@pytest.fixture
def noted(monkeypatch) -> list:
    """Arguments that watching would have been run with, instead of running it."""
    calls = []

    def run(arguments) -> int:
        calls.append(arguments)
        return 0

    monkeypatch.setattr(import_module("bqltop.watch"), "run", run)
    return calls


@pytest.mark.parametrize(
    ("words", "devices"),
    [
        (["veth0"], ["veth0"]),
        (["--json", "veth0"], ["veth0"]),
        (["veth0", "--json", "--once"], ["veth0"]),
        (["--netns", "blue", "veth0"], ["veth0"]),
        (["watch", "demo"], ["demo"]),
        (["--", "-x"], ["-x"]),
        (["--json", "--once", "--", "-x"], ["-x"]),
        (["[red]"], ["[red]"]),
        (["x'y\"z"], ["x'y\"z"]),
        (["é1"], ["é1"]),
        (["7"], ["7"]),
    ],
    ids=" ".join,
)
def test_the_device_is_found_wherever_it_stands(noted, words, devices):
    assert main(words) == 0
    assert noted[0].devices == devices


def test_options_may_stand_before_and_after_the_device(noted):
    main(["--netns", "blue", "veth0", "--json", "--interval", "0.5", "--count", "3", "--no-bpf"])
    (arguments,) = noted
    assert (arguments.netns, arguments.json, arguments.interval, arguments.count) == ("blue", True, 0.5, 3)
    assert arguments.no_bpf is True


def test_ctrl_c_is_status_130(monkeypatch):
    def interrupted(arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(import_module("bqltop.watch"), "run", interrupted)
    assert main(["veth0"]) == 130


def test_a_fault_is_its_text_in_one_line(monkeypatch, capsys):
    def faulty(arguments):
        raise Fault("the moon is not a device")

    monkeypatch.setattr(import_module("bqltop.watch"), "run", faulty)
    assert said(capsys, "veth0") == (2, "", "bqltop: the moon is not a device\n")


def test_few_open_files_are_one_line_and_a_soft_limit_is_none():
    import subprocess
    import sys

    def limited(limit: str) -> subprocess.CompletedProcess:
        line = f"ulimit {limit}; exec {sys.executable} -m bqltop lo --json --once"
        return subprocess.run(["bash", "-c", line], capture_output=True, text=True, stdin=subprocess.DEVNULL)

    found = [limited(f"-n {few}") for few in range(9, 25, 3)]  # with some it does without eBPF, with some without itself
    said = {(done.returncode, done.stderr) for done in found}
    assert said <= {(0, ""), (2, "bqltop: Too many open files: allow more with `ulimit -n`\n")}
    assert len(said) == 2
    assert limited("-Sn 9").returncode == 0


def test_an_error_of_our_own_is_not_hidden(monkeypatch):
    def broken(arguments):
        raise ZeroDivisionError

    monkeypatch.setattr(import_module("bqltop.watch"), "run", broken)
    with pytest.raises(ZeroDivisionError):
        main(["veth0"])


def test_only_the_first_word_is_a_command(noted):
    main(["veth0", "demo"])
    assert noted[0].devices == ["veth0", "demo"]


def test_asking_for_help_imports_neither_textual_nor_bcc():
    import subprocess
    import sys

    code = (
        "import sys\nfrom bqltop.cli import main\n"
        "try: main(['--help'])\nexcept SystemExit: pass\n"
        "print([name for name in ('textual', 'bcc', 'pyroute2') if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == "[]\n"


