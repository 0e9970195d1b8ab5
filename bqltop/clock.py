"""Time that passed between two instants of which both clocks are known. Pure."""

from __future__ import annotations

Instant = tuple[int, int]
"""A wall-clock time (CLOCK_REALTIME, somebody may set it) and a monotonic one (nobody can), both in ns."""


def passed_ns(older: Instant, newer: Instant) -> int:
    """Nanoseconds from one instant to another by the clock that nobody sets. That one goes back only where another boot
    of the host begins (two recordings in one file): there the wall clock is all there is. Never negative."""
    monotonic = newer[1] - older[1]
    return monotonic if monotonic >= 0 else max(0, newer[0] - older[0])
