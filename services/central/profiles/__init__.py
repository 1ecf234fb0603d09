"""Colocation profiles at work: pods are answered for by every replica, statuses are written by the leader."""
