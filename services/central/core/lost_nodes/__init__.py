"""Verdicts say which nodes are lost, guards and pace what may be done about them now."""
