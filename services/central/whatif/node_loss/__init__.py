"""The loss of nodes as a story: what central would do about it, and when."""
