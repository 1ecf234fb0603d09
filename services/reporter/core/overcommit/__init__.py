"""Rules of what over-commitment a node can bear."""
