"""Taints follow the node's conditions: raised by a confirmed pressure, and held for a while after it."""
