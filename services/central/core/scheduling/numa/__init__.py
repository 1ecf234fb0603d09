"""Rules of NUMA nodes: which pods are bound, to which nodes they would be, and how well a machine suits them."""
