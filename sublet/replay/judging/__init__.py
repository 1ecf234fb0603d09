"""Judging: what a contender may see of a frame, and what becomes of all nodes together."""
