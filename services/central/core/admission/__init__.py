"""Common parts of the answers to the API server's admission reviews."""
