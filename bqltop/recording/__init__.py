"""Samples to a file and back: a replay is one more source of Samples. Runs on any machine, without root.

``Recorder`` writes, ``Replay`` plays, ``Recording`` gives the samples of a file by number. The format is in
docs/recording.md.
"""

from bqltop.recording.errors import RecordingError
from bqltop.recording.reader import Recording
from bqltop.recording.replay import Replay
from bqltop.recording.writer import Recorder

__all__ = ["Recorder", "Recording", "RecordingError", "Replay"]
