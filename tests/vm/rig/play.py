"""A story of `tests/vm/guest` in an emulated machine of its own, with the product as it stands in this checkout."""

import json
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rig.boot import Done, run_command
from rig.build import PROJECT, Parts
from rig.machine import Machine

MACHINE = Machine()
GUEST = Path(__file__).parents[1] / "guest"
PACKAGES = ("services", "shared", "sublet")
# A file over the share costs 3 ms: the product is copied into the guest's memory first. With `out` the story begins.
_COMMAND = """
cp -r /share/product /run/product
export PATH=/opt/lib/bin:$PATH
cd /run
mkdir /share/out
python3 -u /share/guest/{name}.py
"""


@dataclass(frozen=True, slots=True)
class Told:
    """A story that was played: what the machine did, and the guest's report."""

    name: str
    done: Done
    report: dict[str, Any]
    folder: Path

    def seen(self, step: str) -> dict[str, Any]:
        """What was seen at a step.

        Raises:
            AssertionError: the story did not come so far; says why, with the guest's last words.
        """
        found: dict[str, Any] | None = self.report.get("seen", {}).get(step)
        if found is None:
            raise AssertionError(f"the story {self.name} has no step {step!r}\n{self.why()}")
        return found

    def why(self) -> str:
        """Why it broke, for people."""
        lines = [f"broken: {self.report.get('broken')}", f"exit code {self.done.code}", self.done.stderr[-3000:]]
        for log in sorted(self.folder.glob("out/*.log")):
            lines += [f"--- {log.name}", log.read_text(errors="replace")[-1500:]]
        return "\n".join([*lines, "--- console", self.done.console[-1000:]])


def play(name: str, parts: Parts, share: Path, *, limit_s: float, given: object = None) -> Told:
    """Play a story; `share` is an empty folder that the guest sees and writes its report to, `given` what it reads."""
    (share / "given.json").write_text(json.dumps(given))
    shutil.copytree(GUEST, share / "guest", ignore=shutil.ignore_patterns("__pycache__"))
    for package in PACKAGES:
        shutil.copytree(PROJECT / package, share / "product" / package)
    # Here it takes a second; six services compiling the same modules at once inside would take a minute.
    subprocess.run([sys.executable, "-m", "compileall", "-qq", share / "product"], check=True)
    done = run_command(parts, MACHINE, _COMMAND.format(name=name), share, limit_s=limit_s)
    report = share / "out/report.json"
    return Told(name, done, json.loads(report.read_text()) if report.exists() else {}, share)
