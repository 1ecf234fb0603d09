"""Carries out what was decided: announces an intent, evicts, writes taints, and backs off from what just failed."""
