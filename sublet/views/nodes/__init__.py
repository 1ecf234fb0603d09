"""A cluster's nodes: which are shown in which order, and what their loss would lead to."""
