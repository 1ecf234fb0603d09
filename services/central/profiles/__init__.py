"""Colocation profiles at work: pods are answered for by every central, statuses are written by the leader."""
