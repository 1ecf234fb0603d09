"""The full examples of all messages are those of the contracts' own tests."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "contracts"))
