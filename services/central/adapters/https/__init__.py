"""An HTTPS server for the API server and its like, and its certificate."""
