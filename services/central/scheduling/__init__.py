"""The scheduler extender at work: every replica answers schedulers, the leader wakes them."""
