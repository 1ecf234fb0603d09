"""Memory detectors find a shortage, of the node or of a NUMA node, and rank the pods."""
