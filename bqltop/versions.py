"""What runs here, for a bug report: the kernel and the libraries, by version. Starts nothing and loads nothing."""

from __future__ import annotations

import platform
import sys
from importlib import metadata

LIBRARIES = ("textual", "rich", "psutil")


def versions() -> dict[str, str]:
    """Name -> version; a library that is not there is left out. bcc is there once it is in use."""
    found = {"bqltop": _version("bqltop") or "?", "kernel": f"{platform.system()} {platform.release()} {platform.machine()}",
             "python": platform.python_version()}  # fmt: skip
    for name in LIBRARIES:
        version = _version(name)
        if version:
            found[name] = version
    bcc = sys.modules.get("bcc")
    if bcc is not None:
        found["bcc"] = str(getattr(bcc, "__version__", "?"))
    return found


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
