"""CPU suppression as Koordinator's agent does it, tick by tick, with its silent skips.

The advisor's policy `koordinator` follows the budget alone: its pace, its floors and its choice of CPUs are ours.

Facts: docs/facts/koordinator-cpu-suppress.md.
"""
