"""Files that the package ships."""

from __future__ import annotations

from pathlib import Path

DEMO = Path(__file__).with_name("veth-bql.jsonl.gz")
"""A recording of the lab on a kernel with BQL in veth, with settings changed on the way (docs/recording.md): what
``bqltop demo`` shows where it cannot build the lab itself. Made by ``python -m bqltop.data.make``."""
