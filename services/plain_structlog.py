"""This module imports structlog without rich, which it uses for tracebacks on a terminal alone.

Rich takes megabytes of every process that loads it, and tracebacks in logs are plain text here.
"""

import sys

HIDDEN = "rich"


def _without_rich() -> None:
    """Import structlog as where rich is not installed, which it allows."""
    if HIDDEN in sys.modules:
        return
    sys.modules[HIDDEN] = None  # type: ignore[assignment]
    try:
        import structlog  # noqa: F401 - for what it keeps of its imports
    finally:
        del sys.modules[HIDDEN]


_without_rich()
