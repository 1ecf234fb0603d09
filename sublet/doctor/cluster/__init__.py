"""Checks judge a cluster by its API server's documents: what it must offer, and what is installed."""
