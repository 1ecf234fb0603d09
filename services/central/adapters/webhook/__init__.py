"""What the webhook needs from the API server besides a certificate."""
