"""Verdicts, guards and pace: which nodes are lost, and what may be done about them now."""
