"""The table of Kubernetes versions: made of what pytest said, and of the versions that the chart takes."""

from pathlib import Path

import pytest
import yaml
from every_version import VERSIONS, Ran, page

ROOT = Path(__file__).parents[3]
REPORT = """<?xml version="1.0" encoding="utf-8"?>
<testsuites name="pytest tests"><testsuite name="pytest" errors="1" failures="1" skipped="1" tests="4" time="90.5">
<testcase classname="tests.kubernetes.test_tide_story" name="one" time="1"><failure>why</failure></testcase>
<testcase classname="tests.kubernetes.test_tide_story" name="two" time="1" />
<testcase classname="tests.kubernetes.test_crds" name="three" time="1"><skipped>why</skipped></testcase>
<testcase classname="tests.kubernetes.test_crds" name="four" time="1"><error>why</error></testcase>
</testsuite></testsuites>
"""


def test_a_row_says_what_failed_first() -> None:
    ran = Ran.read(REPORT)
    assert ran.cell("test_tide_story") == "**1 failed**, 1"
    assert ran.cell("test_crds") == "**1 failed**, 1 skipped"
    assert ran.cell("test_gate_story") == "not run"
    assert ran.seconds == pytest.approx(90.5)


def test_columns_are_the_versions_that_ran_newest_first() -> None:
    shown = page({VERSIONS[-1]: Ran.read(REPORT), VERSIONS[0]: Ran.read(REPORT)}, "a machine")
    assert f"| story | {VERSIONS[0]} | {VERSIONS[-1]} |" in shown
    assert "| tide story | **1 failed**, 1 | **1 failed**, 1 |" in shown
    assert "| minutes, all of it | 2 | 2 |" in shown


def test_every_minor_version_that_the_chart_takes_is_tried() -> None:
    chart = yaml.safe_load((ROOT / "deploy/k8s/chart/Chart.yaml").read_text())
    minors = [int(version.split(".")[1]) for version in VERSIONS]
    assert minors == sorted(range(min(minors), max(minors) + 1), reverse=True)
    assert chart["kubeVersion"] == f">=1.{min(minors)}.0-0"
    assert f"Kubernetes 1.{min(minors)} to 1.{max(minors)}" in (ROOT / "docs/kubernetes.md").read_text()
