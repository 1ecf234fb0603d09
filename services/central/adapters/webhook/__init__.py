"""The HTTPS server that the API server asks about pods, and its certificate."""
