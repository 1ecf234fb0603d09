"""A node whose services each send their spans to one real collector."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "vm"))  # its rig knows how to fetch Debian packages
