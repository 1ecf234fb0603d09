"""Katalyst's memory rules that the advisor does not follow, or not in full."""
