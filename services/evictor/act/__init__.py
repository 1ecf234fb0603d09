"""Actors carry out what was decided: announce an intent, evict, set taints, and leave alone what just failed."""
