"""Rigs run what is measured: Sublet on this host, trees of pods, and listeners on the bus."""
