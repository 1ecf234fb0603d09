"""The running build: the version of Sublet, its revision, and the Python version."""

import sys
from dataclasses import dataclass

VERSION = "0.1.0"
"""The same as in `pyproject.toml`, which an installed wheel or image does not contain."""
REVISION = ""
"""Set when the wheel or the image is built; empty in a checkout."""


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
