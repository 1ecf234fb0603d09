"""Detectors say for the plug-ins whether there is a pressure, and who goes: one room a resource."""
