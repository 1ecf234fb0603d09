"""Kubernetes shapes these words, which messages and objects share: quantities, taints, conditions of a node."""
