"""Files hold the pods, taints and object of a node, and the hand brake; most are replaced as a whole."""
