"""Colocation profiles: what they make of a pod that is created, and whether a pod is admitted."""
