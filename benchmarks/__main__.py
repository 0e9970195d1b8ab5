"""What bqltop costs, each figure beside what was promised: `make bench`, or `python -m benchmarks rate once`.

All but the screen need root: they build a flooded veth pair in namespaces of their own. docs/cost.md says how each
figure is measured. The exit status is 1 when a promise was not kept.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
from collections.abc import Callable, Iterator

from benchmarks import ebpf, once, rate, sampling, screen
from benchmarks.report import Row, load, print_rows


def screen_rows() -> Iterator[Row]:
    """The cases of benchmarks/screen.py as rows."""
    for case in screen.CASES:
        name, bound = case[0], case[5]
        share, bytes_per_s = screen.measure(case, 10.0)
        detail = f"{bytes_per_s / 1000:.0f} kB/s to the terminal; {load()}"
        promised = f"< {bound:.0%}" if bound else ""
        yield Row("screen", name, f"{share:.1%} of a CPU", promised, share < bound if bound else None, detail)


BENCHMARKS: dict[str, Callable[[], Iterator[Row]]] = {
    "once": once.rows,
    "sampling": sampling.rows,
    "ebpf": ebpf.rows,
    "rate": rate.rows,
    "screen": screen_rows,
}


def all_rows(names: list[str]) -> Iterator[Row]:
    for name in names:
        yield from BENCHMARKS[name]()


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"which: {', '.join(BENCHMARKS)} (all of them)")
    names = parser.parse_args().names or list(BENCHMARKS)
    unknown = [name for name in names if name not in BENCHMARKS]
    if unknown:
        parser.error(f"there is no {unknown[0]}; there are: {', '.join(BENCHMARKS)}")
    if os.geteuid() and names != ["screen"]:
        parser.error("run it as root: it builds network namespaces")
    print(f"Linux {platform.release()}, Python {platform.python_version()}, {load()}\n")
    missed = [row for row in print_rows(all_rows(names)) if row.kept is False]
    print(f"\n{len(missed)} of the promises missed" if missed else "\nevery promise kept")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
