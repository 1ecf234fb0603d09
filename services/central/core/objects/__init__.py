"""Objects of the API server are kept here as far as decisions need them, and made for each node."""
