"""Writes of recommendations: statuses, checkpoints, requests of running pods."""
