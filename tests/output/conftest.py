"""Tests of pure functions must not fail because the machine is busy: no deadline for a single example."""

from hypothesis import settings

settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")
