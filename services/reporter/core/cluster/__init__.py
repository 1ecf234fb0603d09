"""What the node tells the cluster over the bus: its offer and uses, and the series of its pods. Pure."""
