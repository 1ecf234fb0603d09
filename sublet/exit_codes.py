"""Exit codes of the command line. Those above 124 are what shells and container tools use for `run`."""

from shared.core.pods.exit_codes import CANNOT_EXECUTE, CANNOT_START, NOT_FOUND, SIGNALLED

__all__ = ("CANNOT_EXECUTE", "CANNOT_START", "FAILED", "NOT_FOUND", "OK", "REFUSED", "SIGNALLED")
OK = 0
FAILED = 1
"""Something needed was not there, or somebody else holds it."""
REFUSED = 2
"""What was asked for cannot be used: a wrong option, value or file."""
