"""`make bench-kubernetes`: what Sublet's agent costs, and how fast it is, on a real kubelet."""
