"""Eviction as Koordinator's agent does it: by features, each with its trigger, its victims and its credit.

The evictor's plugins follow the triggers and the orders of best-effort pods; whom to evict and when it is enough is its
arbiter's, by what is observed and not by credit.

Facts: docs/facts/koordinator-evict.md.
"""
