"""`python -m every_version`: run stories on each supported version of Kubernetes, and write which passed where.

A version has a cluster of its own, built from its published sources the first time. The table in
docs/kubernetes-versions.md is what is kept: a run writes the cells of the stories that it ran, and leaves the others.
"""

import argparse
import os
import platform
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal
from xml.etree import ElementTree

VERSIONS = ("v1.35.4", "v1.34.3", "v1.33.4", "v1.32.5", "v1.31.4", "v1.30.4")
"""A patch of each supported minor version of which the public checksum database knows every module."""
CHECKOUT = Path(__file__).parents[2]
KEPT, PAGE = CHECKOUT / "out/kubernetes/versions", CHECKOUT / "docs/kubernetes-versions.md"
STORIES = "tests/kubernetes"
HEAD = """\
# Kubernetes, version by version

How many tests of each story passed on which version of Kubernetes, in how many seconds, and when: control plane and
kubelet of each, built from its published sources. The first story of a run takes the start of the cluster too. Made by
`make test-kubernetes-all`
(1.35.4: from the report of `make test-cluster`), the last time on {machine}; why a test was skipped, that run says.

"""
NOT_RUN = "not run"
Outcome = Literal["passed", "failed", "skipped"]
Cells = dict[str, dict[str, str]]
"""What the table says of each story, by version."""


@dataclass(slots=True)
class Story:
    """How the tests of a story ended on one version."""

    outcomes: Counter[Outcome] = field(default_factory=Counter)
    seconds: float = 0.0

    def cell(self, day: str) -> str:
        """What the table says of it."""
        said = [f"**{self.outcomes['failed']} failed**"] if self.outcomes["failed"] else []
        said += [str(self.outcomes["passed"])] if self.outcomes["passed"] else []
        said += [f"{self.outcomes['skipped']} skipped"] if self.outcomes["skipped"] else []
        return f"{', '.join(said)} in {self.seconds:.0f} s, {day}"


def read_report(report: str) -> dict[str, str]:
    """The cells of one version's run, by story, from a report in JUnit's form, whose classes are named after files."""
    stories: dict[str, Story] = {}
    suites = ElementTree.fromstring(report)
    for case in suites.iter("testcase"):
        story = stories.setdefault(_told(case.get("classname", "")), Story())
        tags = {part.tag for part in case}
        story.outcomes["failed" if tags & {"failure", "error"} else "skipped" if "skipped" in tags else "passed"] += 1
        story.seconds += float(case.get("time", 0))
    day = next(suite.get("timestamp", "") for suite in suites.iter("testsuite")).partition("T")[0]
    return {name: story.cell(day) for name, story in stories.items()}


def read_page(text: str) -> Cells:
    """The cells of a page."""
    rows = [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in text.splitlines() if line[:1] == "|"]
    if not rows:
        return {}
    (_, *versions), _line, *stories = rows
    said = {version: {row[0]: row[at] for row in stories} for at, version in enumerate(versions, 1)}
    return {version: {k: v for k, v in cells.items() if v != NOT_RUN} for version, cells in said.items()}


def page(cells: Cells, machine: str) -> str:
    """The page of cells: a row a story, a column a version, the newest first."""
    versions = [version for version in VERSIONS if version in cells]
    stories = sorted({story for one in cells.values() for story in one})
    rows = [[story, *(cells[version].get(story, NOT_RUN) for version in versions)] for story in stories]
    head = ["story", *versions]
    lines = HEAD.format(machine=machine).splitlines()
    return "\n".join([*lines, _row(head), _row("---" for _ in head), *map(_row, rows), ""])


def _told(case: str) -> str:
    return case.removeprefix("tests.kubernetes.").removeprefix("test_").replace("_", " ").replace(".", ": ")


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def run(version: str, stories: Sequence[str]) -> int:
    """Run stories on a version; what pytest returned."""
    report = KEPT / f"{version}.xml"
    KEPT.mkdir(parents=True, exist_ok=True)
    report.unlink(missing_ok=True)
    words = [sys.executable, "-m", "pytest", "-m", "kubernetes", f"--junitxml={report}", *stories]
    environment = {**os.environ, "KUBERNETES": version}
    built = subprocess.run([sys.executable, "-m", "kube_rig"], cwd=CHECKOUT, env=environment, check=False)
    return built.returncode or subprocess.run(words, cwd=CHECKOUT, env=environment, check=False).returncode


def main() -> int:
    """Run what is asked for, and write the page."""
    asks = argparse.ArgumentParser(description=__doc__)
    asks.add_argument("--versions", nargs="*", default=list(VERSIONS), choices=VERSIONS)
    asks.add_argument("stories", nargs="*", default=[STORIES])
    asked = asks.parse_args()
    failed = {}
    for version in asked.versions:
        if code := run(version, asked.stories):
            failed[version] = code
        report = KEPT / f"{version}.xml"
        if report.exists():
            cells = read_page(PAGE.read_text())
            cells[version] = cells.get(version, {}) | read_report(report.read_text())
            PAGE.write_text(page(cells, f"{platform.system()} {platform.release()}, {os.cpu_count()} CPUs"))
    print(PAGE.read_text())
    for version, code in failed.items():
        print(f"{version}: ended with {code}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
