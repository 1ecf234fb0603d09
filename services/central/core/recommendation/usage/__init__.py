"""Use of a workload's containers, kept for days in few bytes."""
