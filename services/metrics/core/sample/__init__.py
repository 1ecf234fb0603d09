"""Sample: the message of one pass, from the figures of all targets to what fits into the bus."""
