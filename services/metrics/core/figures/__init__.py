"""Figures: how raw values of a target become figures, from pass to pass."""
