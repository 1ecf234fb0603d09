"""Pauses of the cluster and of pools: read from an operator's ConfigMap, and handed to every node."""
