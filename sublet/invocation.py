"""The name under which this process was called: `sublet`, or `kubectl sublet` as a plugin of kubectl."""

import shlex
import sys
from pathlib import PurePath

from sublet.output import printable

OWN, PLUGIN = "sublet", "kubectl sublet"
EXECUTABLE = "kubectl-sublet"
"""kubectl runs a program of this name for `kubectl sublet` ("Extend kubectl with plugins")."""


def program_name(argv0: str) -> str:
    """The words for help and messages; `python -m sublet` calls itself by the name of its file."""
    return PLUGIN if PurePath(argv0).name == EXECUTABLE else OWN


def as_plugin() -> bool:
    """Whether kubectl called: then a cluster is meant, not this host."""
    return program_name(sys.argv[0]) == PLUGIN


def as_root() -> str:
    """This command as root would type it."""
    return f"sudo {program_name(sys.argv[0])} {printable(shlex.join(sys.argv[1:]))}".rstrip()
