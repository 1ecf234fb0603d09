"""Rules of load: what a pod will use, what a node will use with it, and whether that is too much."""
