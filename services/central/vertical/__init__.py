"""Vertical autoscalers at work: recommendations go into pods that run, paced, one pod of a target at a time."""
