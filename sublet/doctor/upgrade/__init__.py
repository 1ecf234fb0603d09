"""Shows what an upgrade to another chart would change in a cluster, without writing anything."""
