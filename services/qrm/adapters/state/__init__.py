"""State files outlive the process: the checkpoint of what is applied, and the lease on the reclaimed limits."""
