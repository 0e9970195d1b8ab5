"""Trying settings: which to try in which order, what each did, which is best. ``bqltop sweep`` (docs/sweep.md)."""
