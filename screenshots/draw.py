"""Runs bqltop on a lab of its own and keeps what it draws, as SVG and PNG.

    screenshots/make [NAME ...]

Each shot is the application itself, with Textual's headless driver instead of a terminal. One lab per load, all
its shots from the same run.
"""

from __future__ import annotations

import asyncio
import os
import sys
from dataclasses import dataclass, field
from pathlib import Path

from shapes import with_shapes

from bqltop.lab import Lab, LabSpec
from bqltop.model import Sample
from bqltop.recording.replay import Replay
from bqltop.sampler import Sampler
from bqltop.source import Source
from bqltop.tui import BqltopApp
from bqltop.tuning.journal import NoJournal
from bqltop.tuning.tuner import Tuner

HERE = Path(__file__).parent
RECORDING = HERE.parent / "bqltop" / "data" / "veth-bql.jsonl.gz"
FONTS = "/usr/share/fonts/truetype/jetbrains-mono"
WATCHED_S = float(os.environ.get("WATCHED_S", "40"))
"""How long the application has watched before the first shot: the chart needs something to show."""


@dataclass(frozen=True)
class Shot:
    """One picture: its name, the size of the terminal, the keys pressed before, the lab's load; what is pressed after another
    ``then_s`` seconds. ``replay_at_s``: not the lab but this place of the recording that the package ships (no released
    kernel has BQL in veth)."""

    name: str
    size: tuple[int, int]
    keys: tuple[str, ...] = ()
    load: dict = field(default_factory=dict)
    use_bpf: bool = True
    replay_at_s: float | None = None
    then_s: float = 0.5
    last_keys: tuple[str, ...] = ()


ONE_FLOW = {"rules": 5000}
SHOTS = (
    Shot("live", (120, 40), (), ONE_FLOW),
    Shot("live-80x24", (80, 24), (), ONE_FLOW),
    Shot("live-200x50", (200, 50), ("z",), {"queues": 8}),
    Shot("help", (120, 40), ("question_mark",), ONE_FLOW),
    # a shorter qdisc, its effect, and the next knob about to be turned
    Shot("tuning", (144, 45), ("t", *["down"] * 9, "5", "0", "enter"), ONE_FLOW, then_s=18, last_keys=("down", "plus")),
    Shot("bql", (120, 40), replay_at_s=62.0),
    Shot("no-ebpf", (100, 30), (), ONE_FLOW, False),
)


async def draw(shot: Shot, source: Source, watched_s: float = WATCHED_S) -> str:
    """The SVG of one shot."""
    tuner = None
    if isinstance(source, Sampler):
        def tuner(sample: Sample) -> Tuner:
            return Tuner(sample.device.name, source.namespace, NoJournal())

    app = BqltopApp(source, tuner=tuner)
    async with app.run_test(size=shot.size) as pilot:
        await asyncio.sleep(watched_s)
        await pilot.press(*shot.keys)
        await asyncio.sleep(shot.then_s)
        await pilot.press(*shot.last_keys)
        await asyncio.sleep(0.5)
        svg = with_shapes(app.export_screenshot(title="bqltop"))
        source.close()
        app.stop_watching()
    app.tuner.end()
    return svg


def to_png(svg: str, path: Path) -> None:
    import resvg_py

    # Nothing is fetched while drawing, so the web font that Textual names is not to be had.
    svg = svg.replace("Fira Code", "JetBrains Mono")
    png = resvg_py.svg_to_bytes(svg_string=svg, font_dirs=[FONTS], font_family="JetBrains Mono", skip_system_fonts=True)
    path.write_bytes(bytes(png))


def replayed(shot: Shot) -> str:
    """One shot of the shipped recording."""
    with Replay(RECORDING, hold=True) as replay:
        replay.seek_by(shot.replay_at_s)
        return asyncio.run(draw(shot, replay, 3.0))


def keep(shot: Shot, svg: str) -> None:
    (HERE / f"{shot.name}.svg").write_text(svg)
    to_png(svg, HERE / f"{shot.name}.png")
    print(f"screenshots/{shot.name}.svg and .png")


def main(names: list[str]) -> int:
    wanted = [shot for shot in SHOTS if not names or shot.name in names]
    for shot in wanted:
        if shot.replay_at_s is not None:
            keep(shot, replayed(shot))
            continue
        with Lab(LabSpec(**shot.load)) as lab:
            lab.start_flood()
            with Sampler(lab.sender.device, lab.sender.netns, use_bpf=shot.use_bpf) as sampler:
                svg = asyncio.run(draw(shot, sampler))
        keep(shot, svg)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
