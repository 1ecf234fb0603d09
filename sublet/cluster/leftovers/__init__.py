"""What the parts of the cluster's half leave in a cluster, by part; taken away once nobody writes it any more."""
