"""What each part of the cluster's half leaves in a cluster, removed once no process writes it any more."""
