"""A fleet of simulated nodes against a real central: what a cluster of any size costs it, and how fast it judges."""
