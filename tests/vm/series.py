"""
The veth BQL series' comparison, made anew: one slow consumer, five bounds on what may lie in the ring.

    tests/vm/run --kernel vethbql --shell 'python -m tests.vm.series'

prints the table of docs/veth-series.md. Under emulation it shows directions, not speeds.
"""

import sys

from bqltop.kernel import netns
from bqltop.probe import Prober
from bqltop.sampler import Sampler
from bqltop.sweep import report
from bqltop.sweep.plan import Plan, Setting, label
from bqltop.sweep.result import Trial, summarise
from bqltop.sweep.runner import INTERVAL_S, Progress, Sweeper
from bqltop.tuning.journal import NoJournal
from bqltop.tuning.tuner import Tuner

from .devices.veth import veth_lab


def bound(low: str, high: str = "max") -> Setting:
    """Completion per packet (tx-usecs 0) and a limit between two bounds; a hold time that lets it settle in the warm-up."""
    return (("hold_time", "100"), ("tx-usecs", "0"), ("limit_min", low), ("limit_max", high))


SETTINGS: dict[str, Setting] = {
    "no BQL": bound("max"),
    "batched": bound("128", "128"),
    "limit_min 16": bound("16"),
    "limit_min 8": bound("8"),
    "per packet": bound("0"),
}
"""From most to least in the ring. "No BQL": a limit that is never reached. "Batched": completion once per poll of 64 leads to
a limit of 128, which is held here; this kernel completes per packet or per time."""


SLOW = {"rules": 1500}
"""So many filter rules at the consumer that its ring fills up."""
FAST = {"rules": 0, "pps": 4000}
"""A consumer that keeps up, and packets in small bunches: nothing but BQL can stop the queue. (On one emulated CPU a flood at
full speed fills the ring whatever the consumer does, and a full ring makes requeues of its own.)"""


def run_series(load: dict[str, int], runs: int = 2, seconds: float = 5.0) -> tuple[list[Trial], Plan]:
    """All settings in random order, in a lab of its own."""
    plan = Plan(tuple(SETTINGS.values()), runs, seconds, warm_up=3.0, seed=7)
    with veth_lab(qdisc="sfq", **load) as lab:
        where = netns.resolve(lab.sender.netns)
        with Tuner(lab.sender.device, where, NoJournal()) as tuner, Sampler(lab.sender.device, where, sojourn=True) as sampler:
            sampler.sample()  # compiling takes seconds under emulation
            sampler.prober = Prober(where, lab.sender.device, lab.receiver.address, interval_s=0.1).start()
            lab.start_flood()
            sweep = Sweeper(plan, tuner, sampler.every(INTERVAL_S), prober=sampler.prober, notify=tell)
            stopped = sweep.run()
    assert stopped is None, stopped
    return sweep.trials, plan


def tell(progress: Progress) -> None:
    """A word for each trial: the runner gives up on a guest that is silent for long."""
    print(f"{progress.done + 1}/{progress.total}", file=sys.stderr, flush=True)


def figures(trials: list[Trial], name: str) -> dict[str, float | None]:
    """One figure by the settings' names: medians over the runs."""
    result = summarise(tuple(SETTINGS.values()), trials)
    return {title: row.figures[name] for title, row in zip(SETTINGS, result.rows, strict=True)}


def requeues_per_1000(trials: list[Trial]) -> dict[str, float]:
    """Requeues per 1000 packets by the settings' names: a count that emulation and a busy host do not distort."""
    requeues, packets = figures(trials, "requeues_per_s"), figures(trials, "packets_per_s")
    return {title: 1000 * requeues[title] / packets[title] for title in SETTINGS}


def main() -> None:
    for load in (SLOW, FAST):
        trials, plan = run_series(load, runs=3, seconds=8.0)
        text = report.markdown(summarise(plan.settings, trials), plan, str(load))
        for title, setting in SETTINGS.items():
            text = text.replace(label(setting), title)
        print(text)
        print("requeues per 1000 packets:", {title: round(value, 1) for title, value in requeues_per_1000(trials).items()})


if __name__ == "__main__":
    main()
