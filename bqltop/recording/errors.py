"""The one error of this package."""


class RecordingError(Exception):
    """A recording cannot be written or read. The message is one line for the user and names the file."""
