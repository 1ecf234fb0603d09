"""Exit codes of a pod that did not run, as shells and container tools use them."""

CANNOT_START = 125
"""The pod could not be started."""
CANNOT_EXECUTE = 126
NOT_FOUND = 127
SIGNALLED = 128
"""128 + n: ended by signal n."""
