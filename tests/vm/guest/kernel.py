"""Stories in which parts of the product meet this kernel; each leaves the machine so that the next one can be told."""

import json
import sys
from pathlib import Path

import disks
import kubelet
import offload

REPORT = Path("/share/out/report.json")


def main() -> int:
    """All of them, one after the other; what each has seen stands under its name, also where a later one breaks."""
    seen: dict[str, object] = {}
    for story in (disks, kubelet, offload):
        seen[story.__name__] = story.report()
        REPORT.write_text(json.dumps(seen))
    return 0


if __name__ == "__main__":
    sys.exit(main())
