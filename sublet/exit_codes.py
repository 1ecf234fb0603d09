"""Exit codes of the command line. Those above 124 are what shells and container tools use for `run`."""

OK = 0
FAILED = 1
"""Something needed was not there, or somebody else holds it."""
REFUSED = 2
"""What was asked for cannot be used: a wrong option, value or file."""
CANNOT_START = 125
"""`sublet run` itself failed before the command ran."""
CANNOT_EXECUTE = 126
NOT_FOUND = 127
SIGNALLED = 128
"""128 + n: ended by signal n."""
