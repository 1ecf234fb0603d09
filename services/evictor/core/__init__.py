"""Decides whom to evict, when and how many: pure, without I/O, clock and bus."""
