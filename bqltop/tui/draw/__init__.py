"""Drawing: pure functions from data to lines of styled text. No widget, no clock, no kernel."""
