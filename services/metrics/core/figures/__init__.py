"""Figures: targets, raw values, and how one becomes a figure of the other, from pass to pass."""
