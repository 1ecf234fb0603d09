"""In-memory implementations of the ports for unit tests and the simulator; same contract suites."""
