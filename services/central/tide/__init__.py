"""Tide pools: whole nodes change between services and batch work."""
