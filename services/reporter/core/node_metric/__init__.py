"""Koordinator's NodeMetric: what it is collected by, what its figures are made of, and when it is written."""
