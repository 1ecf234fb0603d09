"""Rollouts decide which node gets which config now, and what status the objects show."""
