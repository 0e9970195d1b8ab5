"""Without eBPF: the same JSON, with null for what is not to be had, and the reason."""

from __future__ import annotations

import os
import shutil

import pytest
from looking import ROOT, bqltop, one_line, one_object

pytestmark = pytest.mark.usefixtures("require_root")

NO_BTF = "from bqltop.kernel import btf\nbtf.libbpf().btf__load_vmlinux_btf = lambda: 0"
NO_LIBBPF = "import ctypes\nreal = ctypes.CDLL\ndef CDLL(name, *a, **k):\n    if name and 'libbpf' in str(name): raise OSError(name)\n    return real(name, *a, **k)\nctypes.CDLL = CDLL"  # noqa: E501
NO_BCC = "import sys\nsys.modules['bcc'] = None"
NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all")
POWERLESS = ("setpriv", "--bounding-set=-all", "--inh-caps=-all")

NEEDS_BPF = ("drv_xoff", "stack_xoff", "frozen", "packets", "busy", "stops_driver", "stops_bql", "stopped_driver_ns",
             "stopped_bql_ns", "stopped_ns", "ring_size", "ring_used", "inflight_histogram")  # fmt: skip
BPF_PROBES = ("snapshot", "transmit", "napi", "wake", "ring")


def reasons(told: dict) -> dict[str, str | None]:
    """Why each probe of eBPF is off; every one of them must be."""
    probes = {probe["name"]: probe for probe in told["probes"]}
    assert not any(probes[name]["in_force"] for name in BPF_PROBES)
    return {name: probes[name]["why"] for name in BPF_PROBES}


@pytest.fixture
def at_the_pair(veth_pair):
    pair = veth_pair()
    return lambda *words, **options: bqltop("veth0", "--netns", pair.sender.netns, "--json", "--once", *words, **options)


@pytest.mark.parametrize(
    ("words", "options", "reason"),
    [
        (("--no-bpf",), {}, "--no-bpf"),
        ((), {"patch": NO_BCC}, "python3-bpfcc"),
        ((), {"patch": NO_BTF}, "CONFIG_DEBUG_INFO_BTF"),
        ((), {"patch": NO_LIBBPF}, "libbpf"),
    ],
    ids=["switched off", "no bcc", "no BTF", "no libbpf"],
)
def test_the_same_json_with_nulls_and_the_reason(at_the_pair, words, options, reason):
    with_bpf, without = one_object(at_the_pair()), one_object(at_the_pair(*words, **options))
    assert with_bpf["queues"][0]["packets"] is not None
    assert without.keys() == with_bpf.keys()
    assert without["queues"][0].keys() == with_bpf["queues"][0].keys()
    assert without["window"]["queues"][0].keys() == with_bpf["window"]["queues"][0].keys()
    assert {name: without["queues"][0][name] for name in NEEDS_BPF} == dict.fromkeys(NEEDS_BPF)
    assert without["napis"] == []
    assert without["queues"][0]["tx_timeouts"] == 0  # sysfs has it
    assert without["link"]["tx_packets"] == 0
    assert without["device"] == with_bpf["device"]
    assert all(reason in why for why in reasons(without).values())


def test_the_limits_come_from_sysfs(ifb):
    end = ifb()
    told = one_object(bqltop(end.device, "--netns", end.netns, "--json", "--once", "--no-bpf"))
    (queue,) = told["queues"]
    assert (queue["unit"], queue["inflight"], queue["limit_max"], queue["hold_time_ms"]) == ("bytes", 0, 1879048192, 1000)
    assert queue["drv_xoff"] is None


def own_device_as(before: tuple[str, ...]) -> dict:
    """lo of this namespace, looked at under another command."""
    if not shutil.which(before[0]):
        pytest.skip(f"{before[0]} is not installed")
    tried = bqltop("--version", before=before)
    if tried.returncode:
        pytest.skip(f"that user cannot read {ROOT}")
    return one_object(bqltop("lo", "--json", "--once", before=before, env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}))


def test_another_user_than_root_is_told_to_be_root():
    told = own_device_as(NOBODY)
    assert all("root" in why for why in reasons(told).values())
    assert told["queues"][0]["packets"] is None
    assert told["link"]["tx_packets"] is not None


def test_root_without_capabilities_is_told_what_the_kernel_says():
    told = own_device_as(POWERLESS)
    assert all(why for why in reasons(told).values())
    assert told["queues"][0]["packets"] is None
    assert told["link"]["tx_packets"] is not None


def test_another_user_may_not_enter_a_namespace_and_is_told_so(veth_pair):
    pair = veth_pair()
    if bqltop("--version", before=NOBODY).returncode:
        pytest.skip(f"that user cannot read {ROOT}")
    line = one_line(bqltop("veth0", "--netns", pair.sender.netns, "--json", "--once", before=NOBODY))
    assert pair.sender.netns in line


def test_windows_of_a_flood_have_the_links_and_the_qdiscs_rates(lab):
    built = lab()
    built.start_flood()
    told = one_object(bqltop("veth0", "--netns", built.sender.netns, "--json", "--once", "--no-bpf"))
    assert told["window"]["link"]["tx_packets_per_s"] > 1000
    assert told["window"]["qdiscs"][0]["packets_per_s"] > 1000
    assert told["window"]["queues"][0]["packets_per_s"] is None
