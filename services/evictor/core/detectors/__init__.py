"""Detects pressures and ranks pods for the plugins: a folder for each resource."""
