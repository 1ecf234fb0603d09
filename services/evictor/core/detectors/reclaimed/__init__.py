"""Reclaimed detectors compare what reclaimed pods ask for with what is left, on the node and by zone."""
