"""A cluster from outside: access to its API server, its state of Sublet, and the removal of Sublet."""
