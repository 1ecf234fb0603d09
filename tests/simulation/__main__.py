"""`make test-sim`: worlds by the thousand, one seed after the other; a seed that breaks a promise is shrunk to a case.

python -m tests.simulation --seeds 500          worlds with seeds 0 to 499, on every CPU
python -m tests.simulation --seed 123           the story of one seed
python -m tests.simulation --case FILE …        cases that once failed, from their files
python -m tests.simulation --mutations          deliberate bugs, and how many seeds it takes to see each
"""

import os
import sys
from pathlib import Path

HERE = Path(__file__).parent


def main() -> int:
    """Run what the command line says, with an order of sets and dictionaries that is the same each time."""
    if os.environ.get("PYTHONHASHSEED") != "0":
        os.execve(sys.executable, [sys.executable, str(HERE), *sys.argv[1:]], {**os.environ, "PYTHONHASHSEED": "0"})
    sys.path[:0] = [str(HERE.parents[1]), str(HERE.parent), *(str(HERE / part) for part in ("", "parts", "promises"))]
    from simulation_command import run

    return run(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
