"""Holds the node's conditions and turns them into taints."""
