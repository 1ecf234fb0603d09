"""Replay lists of writes on the guest's cgroup v2, and take down after each what every group has and is granted.

Reads /share/given.json: `[{"groups": {name: cpus}, "writes": [[name, cpus], …]}, …]`; the first name is the top one.
"""

import errno
import json
import sys
from pathlib import Path
from typing import Any

CGROUPS = Path("/sys/fs/cgroup")
SHARE = Path("/share")


def replay(case: dict[str, Any]) -> dict[str, Any]:
    """One list of writes on a tree made for it: the states, the first before any write, and what was refused."""
    names = sorted(case["groups"], key=lambda name: str(name).count("/"))
    for name in names:
        (CGROUPS / name).mkdir()
        (CGROUPS / name / "cpuset.cpus").write_text(case["groups"][name])
        if any(other.startswith(f"{name}/") for other in names):
            (CGROUPS / name / "cgroup.subtree_control").write_text("+cpuset")
    states, refused = [state(names)], []
    for name, cpus in case["writes"]:
        try:
            (CGROUPS / name / "cpuset.cpus").write_text(cpus)
        except OSError as error:
            refused.append(f"{name}={cpus}: {errno.errorcode[error.errno or 0]}")
        states.append(state(names))
    for name in reversed(names):
        (CGROUPS / name).rmdir()
    return {"states": states, "refused": refused}


def state(names: list[str]) -> dict[str, list[str]]:
    """By group: its own set, and what the kernel grants."""
    files = ("cpuset.cpus", "cpuset.cpus.effective")
    return {name: [(CGROUPS / name / file).read_text().strip() for file in files] for name in names}


def main() -> int:
    """Replay all cases."""
    cases = json.loads((SHARE / "given.json").read_text())
    (SHARE / "out/report.json").write_text(json.dumps({"cases": [replay(case) for case in cases]}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
