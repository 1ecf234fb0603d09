"""The six services. None imports another: they meet in `shared.contracts`."""

import sys
from collections.abc import Sequence
from types import ModuleType


class _NoRichForStructlog:
    """A finder that has no rich for structlog, which allows for that.

    Rich takes megabytes of every process that loads it, and tracebacks in logs are plain text here. Structlog itself is
    not loaded here: the lease's watchdog does without.
    """

    def find_spec(self, name: str, _path: Sequence[str] | None = None, _target: ModuleType | None = None) -> None:
        """Refuse rich until structlog is loaded; everything else is for other finders."""
        structlog = sys.modules.get("structlog")
        if name == "rich" and structlog is not None and not hasattr(structlog, "get_logger"):
            raise ModuleNotFoundError("structlog is loaded without rich", name=name)


sys.meta_path.insert(0, _NoRichForStructlog())
