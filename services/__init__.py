"""The six services. None imports another: they meet in `shared.contracts`."""

import sys


def _load_structlog_without_rich() -> None:
    """Import structlog as where rich is not installed, which it allows.

    Rich takes megabytes of every process that loads it, and tracebacks in logs are plain text here.
    """
    if "rich" in sys.modules:
        return
    sys.modules["rich"] = None  # type: ignore[assignment]
    try:
        import structlog  # noqa: F401 - for what it keeps of its imports
    finally:
        del sys.modules["rich"]


_load_structlog_without_rich()
