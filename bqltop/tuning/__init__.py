"""Changing settings without fear: what can be set (knobs), what was set (journal), taking it back (tuner)."""
