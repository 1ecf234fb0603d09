"""The controller of nodes: the leader finds and marks lost nodes, and evicts their reclaimed pods."""
