"""Reads: which files a pass must read again, and how the readings of several groups become those of a pool."""
