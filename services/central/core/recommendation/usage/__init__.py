"""What the containers of a workload used, kept for days in few bytes."""
