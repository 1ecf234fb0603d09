"""Pods and this node, as `sublet get` and `sublet describe` show them."""
