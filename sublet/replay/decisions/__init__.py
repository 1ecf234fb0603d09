"""Recordings of a cluster: what central's controllers saw and decided, and the same decisions repeated."""
