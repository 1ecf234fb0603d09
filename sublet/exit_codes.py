"""Exit codes of the command line (docs/exit-codes.md). Those above 124 are what shells and container tools use."""

from shared.core.pods.exit_codes import CANNOT_EXECUTE, CANNOT_START, NOT_FOUND, SIGNALLED
from shared.errors import Refused, SubletError, Unavailable

__all__ = (
    "CANNOT_EXECUTE", "CANNOT_START", "FAILED", "INTERNAL", "INTERRUPTED", "NOT_FOUND", "NOT_THERE", "OK", "REFUSED",
    "SIGNALLED", "code_of",
)  # fmt: skip
OK = 0
FAILED = 1
"""The answer is no: not found, not ready, not whole; or this user or host cannot do it, or somebody else holds it."""
REFUSED = 2
"""What was asked for cannot be used: a wrong option, value, name, file or setting. Nothing was changed."""
NOT_THERE = 3
"""Something needed is not there now: no NATS server, no API server, a service that does not answer."""
INTERNAL = 70
"""A fault of Sublet itself (EX_SOFTWARE of sysexits.h)."""
INTERRUPTED = SIGNALLED + 2
"""Ctrl-C."""

NO_SUCH_OBJECT = "not_found"
"""The reason of a refusal whose request can be used, but names what does not exist; kubectl ends with 1 there, too."""


def code_of(error: SubletError) -> int:
    """The exit code of an error that ends a command."""
    if isinstance(error, Refused):
        return FAILED if error.reason == NO_SUCH_OBJECT else REFUSED
    return NOT_THERE if isinstance(error, Unavailable) else FAILED
