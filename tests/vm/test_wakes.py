"""Where the kernel has kprobes or fentry, wake-ups are timed where they happen; elsewhere bqltop says that they are not."""

import os
from contextlib import contextmanager
from pathlib import Path

import pytest

from .capabilities import capability
from .devices.shell import link_stats
from .devices.veth import veth_lab
from .watching import attached, json_samples, look, probe

TRACING = Path("/sys/kernel/tracing")


@contextmanager
def counted(function: str):
    """Calls of a kernel function, counted by the kernel's own kprobe events: a second opinion. Gives a function."""
    event = f"bqltop_vm/{function}"
    _append(f"p:{event} {function}\n")
    enable = TRACING / "events" / event / "enable"
    try:
        enable.write_text("1")
        yield lambda: _hits(event)
    finally:
        enable.write_text("0")
        _append(f"-:{event}\n")


def _append(line: str) -> None:
    """Change the list of kprobe events. A write that truncates would remove them all, and fails while one is in use."""
    with os.fdopen(os.open(TRACING / "kprobe_events", os.O_WRONLY | os.O_APPEND), "w") as events:
        events.write(line)


def _hits(event: str) -> int:
    for line in (TRACING / "kprobe_profile").read_text().splitlines():
        name, hits, *_ = line.split()
        if name == event.split("/")[1]:
            return int(hits)
    return 0


def test_the_precision_in_force_is_named():
    with veth_lab(pps=2000) as lab:
        lab.start_flood()
        (sample,) = json_samples(lab.sender.device, "--once", netns=lab.sender.netns)
    wake = next(entry for entry in sample["probes"] if entry["name"] == "wake")
    if capability("fentry").there:
        assert (wake["in_force"], wake["why"]) == (True, "exact, by fentry")
    elif capability("kprobes").there:
        assert (wake["in_force"], wake["why"]) == (True, "exact, by kprobe")
    else:
        assert not wake["in_force"]
        assert "next poll or transmit" in wake["why"]


@pytest.mark.kernel(needs="kprobes")
def test_every_stop_of_a_veth_ends_with_a_wake_up():
    with veth_lab() as lab, attached(lab.sender.device, lab.sender.netns) as sampler:
        assert probe(sampler.sample(), "wake").in_force
        with counted("netif_tx_wake_queue") as driver_wakes, counted("netif_schedule_queue") as schedules:
            lab.start_flood()
            look(sampler, 2)
            lab.stop_flood()
            lab.settle(60)
            queue = sampler.sample().queues[0]
            called, scheduled = driver_wakes(), schedules()
        stops, wakes = (queue.stops_driver, queue.stops_bql), (queue.wakes_driver, queue.wakes_bql)
        if link_stats(lab.sender.device, lab.sender.netns)["tx_dropped"]:
            assert stops == wakes == (0, 0)  # this driver drops instead of stopping
            return
        assert sum(wakes) > 10
        assert wakes[0] <= called
        assert wakes[1] <= scheduled
        # a wake-up may come between the driver's stop and the look after its transmit function: then there was no stop to see
        assert sum(stops) * 0.9 <= sum(wakes) <= sum(stops) * 1.1 + 2
        assert not queue.drv_xoff
        assert not queue.stack_xoff
