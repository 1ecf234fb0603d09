"""Recorded and public traces through the advisor's own decisions, so that policies can be compared."""
