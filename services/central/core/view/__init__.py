"""The view of the cluster at one moment: what bus and API server say of each node, and the verdicts on it."""
