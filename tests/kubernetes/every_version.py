"""`python -m every_version`: run the suite on each supported version of Kubernetes, and write which story passed where.

A version has a cluster of its own, built from its published sources the first time. What pytest says of each is kept in
`out/kubernetes/versions`, and the table in docs/kubernetes-versions.md is made of what is kept there.
"""

import argparse
import os
import platform
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
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

How many tests of each story passed on which version of Kubernetes: control plane and kubelet of each, built from its
published sources. Made by `make test-kubernetes-all` on {machine}; why a test was skipped, that run says.

"""
Outcome = Literal["passed", "failed", "skipped"]


@dataclass(frozen=True, slots=True)
class Ran:
    """What one version's run said: how many tests of each story ended how, and in how many seconds."""

    stories: Mapping[str, Counter[Outcome]]
    seconds: float

    @classmethod
    def read(cls, report: str) -> "Ran":
        """From a report in JUnit's form, whose classes are named after files."""
        stories: dict[str, Counter[Outcome]] = {}
        suites = ElementTree.fromstring(report)
        for case in suites.iter("testcase"):
            story = case.get("classname", "").removeprefix("tests.kubernetes.")
            outcomes = stories.setdefault(story, Counter())
            tags = {part.tag for part in case}
            outcomes["failed" if tags & {"failure", "error"} else "skipped" if "skipped" in tags else "passed"] += 1
        return cls(stories, sum(float(suite.get("time", 0)) for suite in suites.iter("testsuite")))

    def cell(self, story: str) -> str:
        """What the table says of a story."""
        outcomes = self.stories.get(story)
        if outcomes is None:
            return "not run"
        said = [f"**{outcomes['failed']} failed**"] if outcomes["failed"] else []
        said += [str(outcomes["passed"])] if outcomes["passed"] else []
        return ", ".join([*said, f"{outcomes['skipped']} skipped"] if outcomes["skipped"] else said)


def page(ran: Mapping[str, Ran], machine: str) -> str:
    """The page of what is kept: a row a story, a column a version."""
    versions = [version for version in VERSIONS if version in ran]
    stories = sorted({story for one in ran.values() for story in one.stories})
    rows = [[_told(story), *(ran[version].cell(story) for version in versions)] for story in stories]
    rows.append(["minutes, all of it", *(f"{ran[version].seconds / 60:.0f}" for version in versions)])
    lines = HEAD.format(machine=machine).splitlines()
    head = ["story", *versions]
    return "\n".join([*lines, _row(head), _row("---" for _ in head), *map(_row, rows), ""])


def _told(story: str) -> str:
    return story.removeprefix("test_").replace("_", " ").replace(".", ": ")


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
    failed = {version: code for version in asked.versions if (code := run(version, asked.stories))}
    ran = {path.stem: Ran.read(path.read_text()) for path in sorted(KEPT.glob("v*.xml"))}
    PAGE.write_text(page(ran, f"{platform.system()} {platform.release()}, {os.cpu_count()} CPUs"))
    print(PAGE.read_text())
    for version, code in failed.items():
        print(f"{version}: ended with {code}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
