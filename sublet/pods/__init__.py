"""Checks of the pod commands before a pod starts, and their output."""
