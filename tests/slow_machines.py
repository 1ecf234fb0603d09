"""Limits of tests on machines slower than those they were written on.

A limit in a test tells a hang from work that goes on, and nothing else: how fast a thing is stands in `bench/`. Each is
written for a quiet machine of two CPUs. Machines that share their CPUs with others took five times as long, so every
limit is multiplied here, which costs nothing where nothing hangs.
"""

FACTOR = 5.0


def patience_s(limit_s: float) -> float:
    """The seconds after which a wait counts as a hang, from those that a quiet machine may need."""
    return limit_s * FACTOR
