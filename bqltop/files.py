"""Files that are renewed in one step or moved away: only ordinary ones, for a rename over /dev/null takes it away. And how
many may be open."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from pathlib import Path

MANY = 65_536
"""Open files that are enough for hundreds of namespaces: a login shell's soft limit is often 1024."""


def allow_many() -> None:
    """Raise this process's soft limit of open files as far as the hard one lets it."""
    with contextlib.suppress(ImportError, OSError, ValueError):  # no such thing outside Unix
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = MANY if hard == resource.RLIM_INFINITY else min(hard, MANY)
        if soft != resource.RLIM_INFINITY and soft < wanted:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def must_be_ordinary(path: Path) -> None:
    """Raises OSError unless ``path`` is an ordinary file or may become one. Devices, FIFOs and folders are none."""
    with contextlib.suppress(FileNotFoundError):
        mode = os.stat(path).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, "not an ordinary file")


def renew(path: Path, data: bytes) -> None:
    """Give ``path`` new contents: a reader, and a crash, see the old ones or the new ones. A symbolic link stays one.
    Raises OSError, and leaves no half-written file."""
    path = Path(os.path.realpath(path))
    must_be_ordinary(path)
    draft = path.with_name(f".{path.name}.{os.getpid()}.tmp")  # a collector of *.prom must not pick it up
    draft.unlink(missing_ok=True)
    try:
        with open(draft, "xb") as file:
            file.write(data)
        draft.replace(path)
    except OSError:
        draft.unlink(missing_ok=True)
        raise
