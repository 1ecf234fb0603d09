"""What the node's devices are set to, beside the limits of groups."""
