"""The screen: draws windows, sends knob changes. No kernel call in here."""

from bqltop.tui.app import BqltopApp
from bqltop.tui.run import run

__all__ = ["BqltopApp", "run"]
