"""Judging: what a contender may see of a frame, and the total over all nodes."""
