"""`python -m rig`: install the tools where that is allowed, and build all parts of the emulated machine."""

import sys

from rig.build import VM, build
from rig.packages import RigMissing


def say(line: str) -> None:
    """One line for whoever waits."""
    print(f"emulated machine: {line}", flush=True)


try:
    VM.install_tools(say)
    build(say)
except RigMissing as error:
    sys.exit(f"emulated machine: {error}")
say(f"ready in {VM.cache_folder()}")
