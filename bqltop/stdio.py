"""Standard input, output and error as a command needs them: there, and with one line for what cannot be written."""

from __future__ import annotations

import contextlib
import io
import os
import sys

from bqltop.fault import Fault

IN, OUT, ERR = 0, 1, 2


class OutputError(Fault):
    """Standard output cannot be written; the message is one line for the user."""


class ReaderGone(BrokenPipeError):
    """Whoever read standard output (``| head``) has seen enough: the end, and nobody's fault."""


def prepare() -> None:
    """For a process of its own: no stream is missing, what cannot be written is OutputError or ReaderGone on standard
    output and goes unsaid on standard error, and what an encoding lacks comes out as an escape."""
    _fill(IN, os.O_RDONLY)
    _fill(OUT, os.O_RDONLY)  # on purpose: who closed it is told so, at the first line
    _fill(ERR, os.O_WRONLY)
    sys.stdin = sys.stdin or _text(io.FileIO(IN, "r", closefd=False), "utf-8")
    sys.stdout = _text(_Out(OUT, "w", closefd=False), getattr(sys.stdout, "encoding", "utf-8"))
    sys.stderr = _text(_Err(ERR, "w", closefd=False), getattr(sys.stderr, "encoding", "utf-8"), line_buffering=True)


def discard(descriptor: int) -> None:
    """Point a broken stream at /dev/null: what is still buffered would raise again at the interpreter's own exit."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, descriptor)
    os.close(null)


def _fill(descriptor: int, flags: int) -> None:
    """Open /dev/null there where nothing is open, lest the next socket be taken for standard output."""
    try:
        os.fstat(descriptor)
    except OSError:
        opened = os.open(os.devnull, flags)
        if opened != descriptor:
            os.dup2(opened, descriptor)
            os.close(opened)


def _text(raw: io.FileIO, encoding: str, line_buffering: bool = False) -> io.TextIOWrapper:
    buffered = io.BufferedWriter(raw) if raw.writable() else io.BufferedReader(raw)
    return io.TextIOWrapper(buffered, encoding, "backslashreplace", line_buffering=line_buffering or raw.isatty())


class _Out(io.FileIO):
    def write(self, data) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            discard(OUT)
            raise ReaderGone from None
        except OSError as error:
            discard(OUT)
            raise OutputError(f"cannot write the output: {error.strerror or error}") from None


class _Err(io.FileIO):
    def write(self, data) -> int:
        with contextlib.suppress(OSError):
            return super().write(data)
        return len(data)
