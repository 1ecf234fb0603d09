"""Reads: which files a pass must read, and which readings are those of several groups."""
