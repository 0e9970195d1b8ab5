"""The terminal driver: Textual's own, made to survive a terminal that goes away and characters it cannot show."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TextIO

from textual.drivers.linux_driver import LinuxDriver


class PatientFile:
    """Text on its way to the terminal. A character that the terminal's encoding lacks becomes a question mark; once
    the terminal is gone (EIO, EPIPE) everything is swallowed and ``lost`` is called, once.

    Without this Textual's writer thread dies of the first such error, its queue fills up, and the application
    blocks for good on the next write.
    """

    def __init__(self, file: TextIO, lost: Callable[[], None]) -> None:
        self._file, self._lost, self._gone = file, lost, False
        self._encoding = getattr(file, "encoding", None) or "utf-8"

    def write(self, text: str) -> int:
        if not self._gone:
            try:
                self._file.write(text.encode(self._encoding, "replace").decode(self._encoding))
            except (OSError, ValueError):
                self._give_up()
        return len(text)

    def flush(self) -> None:
        if not self._gone:
            try:
                self._file.flush()
            except (OSError, ValueError):
                self._give_up()

    def fileno(self) -> int:
        return self._file.fileno()

    def _give_up(self) -> None:
        self._gone = True
        self._lost()


class TerminalDriver(LinuxDriver):
    """Ends the application when the terminal is lost, whichever of the two threads finds out first."""

    def start_application_mode(self) -> None:
        if not isinstance(self._file, PatientFile):
            # Textual writes to standard error; `bqltop veth0 2>log` is to draw on the terminal all the same.
            file = sys.__stdout__ if sys.__stdout__ and sys.__stdout__.isatty() else self._file
            self._file = PatientFile(file, self._terminal_lost)
        super().start_application_mode()

    def _terminal_lost(self) -> None:
        self._loop.call_soon_threadsafe(self._app.exit, 1)

    def _run_input_thread(self) -> None:
        try:
            self.run_input_thread()
        except BaseException:
            self._terminal_lost()
