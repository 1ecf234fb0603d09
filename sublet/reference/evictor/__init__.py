"""Katalyst's rules about evictions that the evictor does not follow."""
