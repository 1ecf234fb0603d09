"""A Lease chooses the one central that writes; writes to objects and nodes go through it."""
