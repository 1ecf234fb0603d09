"""What an upgrade to another chart would change in a cluster: read before it, and nothing is written."""
