"""Panels: each keeps the lines it shows and redraws only those that changed. What they show is drawn in tui/draw."""
