"""Detectors say for the plugins whether there is a pressure, and who goes: one room a resource."""
