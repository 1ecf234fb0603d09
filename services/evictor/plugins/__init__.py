"""Eviction plugins: one file each, found by scanning this folder."""
