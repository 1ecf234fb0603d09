"""What runs here: the version of Sublet, the revision that it was built of, and the Python below it."""

import sys
from dataclasses import dataclass

VERSION = "0.1.0"
"""The same as in `pyproject.toml`, which a checkout and an image do not have beside them."""
REVISION = ""
"""Written by whoever builds the wheel or the image; empty in a checkout."""


@dataclass(frozen=True, slots=True)
class Build:
    """A build, as `sublet --version`, logs, `status`, the node's object and `sublet_build_info` name it."""

    version: str
    revision: str
    python: str

    def words(self) -> str:
        """The build on one line."""
        return f"{self.version} (revision {self.revision or 'not recorded'}, Python {self.python})"


BUILD = Build(VERSION, REVISION, ".".join(map(str, sys.version_info[:3])))
