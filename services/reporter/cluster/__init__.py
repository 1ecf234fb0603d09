"""What this node tells the cluster over the bus, where somebody there wants it."""
