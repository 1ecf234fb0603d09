"""What the cluster's half costs: processes of central that answer the API server."""
