"""metrics: what the kernel says, as one NodeSample a pass."""
