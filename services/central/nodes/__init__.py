"""The controller of nodes: lost ones are found, marked, and their reclaimed pods evicted, by the leader alone."""
