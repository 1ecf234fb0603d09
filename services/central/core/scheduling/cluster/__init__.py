"""What the extender knows of the cluster, and what follows from it for one pod."""
