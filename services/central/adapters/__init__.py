"""Adapters read what central needs from files."""
