"""The one kind of error whose text is meant for the person at the keyboard."""

from __future__ import annotations


class Fault(Exception):
    """Wrong input, or something that is missing. The text is one plain line: what is wrong and what to do. Every
    module's own error of that kind is one; the command line shows the text and ends with status 2."""
