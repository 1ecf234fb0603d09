"""A Kubernetes cluster of the tests' own: control plane and one node, built once from their sources into a cache."""
