"""``--record``: its options, and the recorder they ask for."""

from __future__ import annotations

import argparse
import contextlib
import platform
import re
import sys
from collections.abc import Iterator

from bqltop.recording.tee import Recorded
from bqltop.recording.writer import Recorder

_SIZES = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30}
_AGES = {"": 1, "s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400}


def size(text: str) -> int:
    """Bytes: 500M, 2Gi, 1000000. Raises ArgumentTypeError."""
    found = re.fullmatch(r"(\d{1,15})(k|M|G|Ki|Mi|Gi)?B?", text, re.ASCII)
    if not found or not int(found[1]):
        raise argparse.ArgumentTypeError(f"{text!r} is no size like 500M or 2Gi")
    return int(found[1]) * _SIZES[found[2] or ""]


def age(text: str) -> float:
    """Seconds: 1h, 30min, 1d. Raises ArgumentTypeError."""
    found = re.fullmatch(r"(\d{1,9})(s|m|min|h|d)?", text, re.ASCII)
    if not found or not int(found[1]):
        raise argparse.ArgumentTypeError(f"{text!r} is no time like 30min, 1h or 1d")
    return int(found[1]) * _AGES[found[2] or ""]


def add_record(parser: argparse.ArgumentParser) -> None:
    """Add ``--record`` and its rotation."""
    parser.add_argument("--record", metavar="FILE", help="write every sample and event to FILE (docs/recording.md)")
    parser.add_argument("--record-size", type=size, metavar="SIZE", help="begin a new file at this size, like 500M")
    parser.add_argument("--record-age", type=age, metavar="TIME", help="begin a new file after this time, like 1h")


def about() -> dict[str, str]:
    """What a recording's header says about the host: what a mail to a kernel list would, and no name of the host."""
    return {"kernel": platform.release(), "machine": platform.machine(), "system": platform.system()}


@contextlib.contextmanager
def recorded(source, arguments: argparse.Namespace, **more: str) -> Iterator:
    """``source`` itself, or with ``--record`` a source that also records; the file is finished at the end. ``more`` goes
    to the header beside ``about``. Raises RecordingError where the file cannot be begun."""
    if arguments.record is None:
        yield source
        return
    recorder = Recorder(arguments.record, about={**about(), **more}, max_bytes=arguments.record_size,
                        max_age_s=arguments.record_age)
    recording = Recorded(source, recorder, lambda line: print(f"bqltop: {line}", file=sys.stderr))
    with recorder:
        yield recording
    recording.tell_failure()
    if recorder.lost:
        print(f"bqltop: the disk was too slow: {recorder.lost} samples are not in {arguments.record}", file=sys.stderr)
