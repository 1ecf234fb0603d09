"""Nodes and TideNodePools at the API server, as tide pools write them."""
