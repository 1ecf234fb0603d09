"""Recordings of a cluster: what central's controllers saw, what they decided, and the same decided anew."""
