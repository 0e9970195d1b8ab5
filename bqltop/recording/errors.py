"""The one error of this package."""

from bqltop.fault import Fault


class RecordingError(Fault):
    """A recording cannot be written or read. The message is one line for the user and names the file."""
