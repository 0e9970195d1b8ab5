"""The application on a made-up device, as a process of its own: what the terminal tests start.

    played.py MARK [--raise-in-drawing] [--fail-in-source]

Writes the word "closed" to the file MARK when the source is closed.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from fake_source import FakeSource

from bqltop.tui import BqltopApp, run


class Marking(FakeSource):
    def sample(self):
        if "--fail-in-source" in sys.argv and self._tick > 5:
            raise OSError(5, "Input/output error")
        return super().sample()

    def close(self) -> None:
        super().close()
        Path(sys.argv[1]).write_text("closed")


def main() -> int:
    if "--raise-in-drawing" in sys.argv:
        from bqltop.tui.draw import panels

        def broken(frame, width, height):
            if frame.window is not None:
                raise ZeroDivisionError("a bug in drawing")
            return []

        panels.qdiscs = broken
    return run(BqltopApp(Marking("packets", 4)))


if __name__ == "__main__":
    sys.exit(main())
