"""Compares two agents on one node, one of which observes: what each gives to best-effort pods, moment by moment."""
