"""Samples to a file and back: a replay is one more source of Samples. Runs on any machine, without root."""
