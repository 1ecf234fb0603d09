"""A cluster from outside: the way to its API server, and what its objects tell of Sublet."""
