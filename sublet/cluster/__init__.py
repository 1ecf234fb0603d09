"""A cluster from outside: the way to its API server, what its objects tell of Sublet, and Sublet taken out of it."""
