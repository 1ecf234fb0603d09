"""Koordinator's `slo-controller-config`: what its eight keys may say, and what of them holds on a node."""
