"""Devices of the node: what is read of them, and the one place that sets them."""
