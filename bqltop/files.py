"""Files that are renewed in one step or moved away: only ordinary ones, for a rename over /dev/null takes it away."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from pathlib import Path


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
