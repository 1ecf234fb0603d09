"""What the node publishes to the cluster over the bus: its offer and use, and the series of its pods. Pure."""
