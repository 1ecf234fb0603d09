"""What the cluster's half costs: messages of nodes, and the processes that answer out of them."""
