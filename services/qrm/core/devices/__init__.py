"""Settings of the node's devices, besides the limits of groups."""
