"""The diagnostics page and the panel about a tun's holders."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fake_devices import FakeDevices, GoingApp
from fake_source import FakeSource

from bqltop.model import TunQueueSample
from bqltop.tui.diagnosis import Diagnosis, Spread
from bqltop.tui.draw import diagnostics, tun
from bqltop.tui.frame import Frame
from bqltop.tui.screens import diagnostics as screen

SIZES = ((80, 24), (120, 40))
VERSIONS = {"bqltop": "1.0", "kernel": "Linux 6.18.0 x86_64", "python": "3.11.2", "textual": "8.2.8"}


def counted(fake: FakeSource, count: int, bpf: bool = True):
    """Samples with the kernel's account of the programs: 1 % of a CPU, 50 ns a run."""
    for n, sample in enumerate(fake.samples(count)):
        own = replace(sample.own, late_ns=n * 1000, missed=n // 10)
        yield replace(sample, own=replace(own, bpf_ns=n * 1_000_000, bpf_runs=n * 20_000) if bpf else own)


def test_figures_of_a_span():
    diagnosis = Diagnosis()
    assert diagnosis.figures() is None
    for sample in counted(FakeSource("veth"), 51):
        diagnosis.take(sample)
    figures = diagnosis.figures()
    assert figures.taken == 51
    assert (figures.missed, figures.missed_lately) == (5, 5)
    assert figures.late.highest == 50_000
    assert figures.between.p50 == pytest.approx(1e8)
    assert figures.cpu_share == pytest.approx(0.031)
    assert figures.bpf_share == pytest.approx(0.01)
    assert figures.bpf_runs_per_s == pytest.approx(200_000)
    assert figures.bpf_ns_per_run == pytest.approx(50)


def test_another_attachment_is_no_difference_of_counters():
    diagnosis = Diagnosis()
    for n, sample in enumerate(counted(FakeSource("veth"), 20)):
        diagnosis.take(replace(sample, epoch=n // 19))
    assert diagnosis.figures().bpf_share is None


def test_a_spread_of_nothing_and_of_one():
    assert Spread.of([]) is None
    assert Spread.of([3.0]) == Spread(3.0, 3.0, 3.0)


@pytest.mark.parametrize("width", [40, 80, 200])
def test_the_page_is_as_wide_as_the_window(width):
    diagnosis = Diagnosis()
    for sample in counted(FakeSource("veth", name="[red]"), 20):
        diagnosis.take(sample)
    state = diagnostics.State(sample, diagnosis.figures(), 0.1, VERSIONS)
    lines = diagnostics.page(state, width)
    assert {line.cell_length for line in lines} == {width}
    assert "[red]" in "\n".join(line.text for line in lines)


def test_what_is_not_to_be_had_is_said():
    fake = FakeSource("veth", ebpf=False)
    diagnosis = Diagnosis()
    for sample in counted(fake, 3, bpf=False):
        diagnosis.take(sample)
    state = diagnostics.State(sample, diagnosis.figures(), 0.1, VERSIONS, "not permitted [red]")
    text = "\n".join(line.text for line in diagnostics.page(state, 100))
    assert "not permitted [red]" in text
    assert "not in force: needs root" in text
    assert diagnostics.page(diagnostics.State(), 80)


@pytest.mark.parametrize(("strays", "said"), [(7, True), (0, False), (None, False)])
def test_packets_that_no_queue_counts_are_said(strays, said):
    (sample,) = FakeSource("veth").samples(1)
    sample = replace(sample, own=replace(sample.own, strays=strays))
    diagnosis = Diagnosis()
    diagnosis.take(sample)
    text = "\n".join(line.text for line in diagnostics.page(diagnostics.State(sample, diagnosis.figures(), 0.1, VERSIONS), 100))
    assert ("7 packets of which no queue could be told" in text) is said


async def test_the_kernel_counts_only_while_the_page_is_open():
    app = GoingApp(FakeDevices())
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        app.play(20, s0=FakeSource("veth"))
        await pilot.press("d")
        await pilot.pause()
        assert app.devices.accounts == [True]
        app.play(20)
        await pilot.press("pagedown", "up", "d")
        await pilot.pause()
        assert app.devices.accounts == [True, False]
        assert app.screen is app.live


@pytest.mark.parametrize("size", SIZES, ids=lambda s: f"{s[0]}x{s[1]}")
def test_the_page_looks_like_this(snap_compare, monkeypatch, size):
    monkeypatch.setattr(screen, "versions", lambda: VERSIONS)

    async def before(pilot) -> None:
        await pilot.pause()
        app = pilot.app
        for sample in counted(FakeSource("veth"), 100):
            app.take(sample)
        await pilot.press("d")
        await pilot.pause()

    assert snap_compare(GoingApp(FakeDevices()), terminal_size=size, run_before=before)


# -- tun -------------------------------------------------------------------------------------------------------------

HOLDERS = (
    TunQueueSample(812, "qemu-system-x86", "S", True, True, True, ("tap", "vnet_hdr", "multi_queue")),
    TunQueueSample(813, "[red]", "T", False, True, False),
    TunQueueSample(814, "x'y\"z", "S", False, False, None, certain=False),
)


def tun_sample(fake: FakeSource, holders=HOLDERS):
    sample = fake.sample()
    device = replace(sample.device, name="tap0", kind="tun", driver="tun", peer=None, napi_mode=None, tx_queue_len=500)
    return replace(sample, device=device, tun_queues=holders)


@pytest.mark.parametrize("width", [30, 44, 80, 120])
def test_each_holder_has_a_line_that_fits(width):
    frame = Frame(tun_sample(FakeSource("veth")))
    lines = tun.panel(frame, width, 3)
    assert {line.cell_length for line in lines} == {width}
    text = "\n".join(line.text for line in lines)
    if width >= 80:
        for words in ("812 qemu-system-x86", "by vhost", "813 [red]", "stopped", "takes none", "switched off",
                      "by name only"):
            assert words in text
    assert tun.note(frame) == "ring = txqueuelen 500  tap vnet_hdr multi_queue"


def test_nobody_and_too_many():
    nobody = Frame(tun_sample(FakeSource("veth"), ()))
    assert "nobody" in tun.panel(nobody, 80, 1)[0].text
    many = Frame(tun_sample(FakeSource("veth"), HOLDERS * 10))
    assert "and 26 more queues" in tun.panel(many, 80, 5)[-1].text
    assert tun.lines_wanted(many.sample) == 1 + tun.MOST
    assert tun.lines_wanted(FakeSource("veth").sample()) == 0


@pytest.mark.parametrize("size", SIZES, ids=lambda s: f"{s[0]}x{s[1]}")
def test_a_tap_looks_like_this(snap_compare, size):
    async def before(pilot) -> None:
        await pilot.pause()
        fake = FakeSource("veth")
        for _ in range(60):
            pilot.app.take(tun_sample(fake))
        pilot.app.draw_now()
        await pilot.pause()

    assert snap_compare(GoingApp(), terminal_size=size, run_before=before)
