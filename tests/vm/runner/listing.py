"""`tests/vm/run --list`: what there is, without booting anything."""

import ast
from pathlib import Path

from .kernels import Source


def test_names(folder: Path) -> list[str]:
    """file::function of every test in the folder, read from the source (importing it would need the guest)."""
    names = []
    for path in sorted(folder.glob("test_*.py")):
        tree = ast.parse(path.read_text())
        names += [
            f"{path.name}::{node.name}"
            for node in tree.body
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
        ]
    return names


def print_list(sources: list[Source], folder: Path) -> None:
    """Print kernels and tests, one a line."""
    print("kernels:")
    for source in sources:
        print(f"  {source.name:<12} {source.describe()}")
    print("tests:")
    for name in test_names(folder):
        print(f"  {name}")
