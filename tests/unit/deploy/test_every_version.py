"""The table of Kubernetes versions: made of what pytest said, and of the versions that the chart takes."""

from pathlib import Path

import yaml
from every_version import VERSIONS, page, read_page, read_report

ROOT = Path(__file__).parents[3]
REPORT = """<?xml version="1.0" encoding="utf-8"?>
<testsuites name="pytest tests"><testsuite name="pytest" tests="4" timestamp="2026-11-28T15:05:30.503351+00:00">
<testcase classname="tests.kubernetes.test_tide_story" name="one" time="60.6"><failure>why</failure></testcase>
<testcase classname="tests.kubernetes.test_tide_story" name="two" time="1" />
<testcase classname="tests.kubernetes.test_crds" name="three" time="1"><skipped>why</skipped></testcase>
<testcase classname="tests.kubernetes.test_crds" name="four" time="1"><error>why</error></testcase>
</testsuite></testsuites>
"""


TIDE, CRDS = "**1 failed**, 1 in 62 s, 2026-11-28", "**1 failed**, 1 skipped in 2 s, 2026-11-28"


def test_a_cell_says_what_failed_first_how_long_it_took_and_when() -> None:
    assert read_report(REPORT) == {"tide story": TIDE, "crds": CRDS}


def test_columns_are_the_versions_that_ran_newest_first_and_a_story_that_did_not_run_says_so() -> None:
    shown = page({VERSIONS[-1]: {"tide story": TIDE}, VERSIONS[0]: {"tide story": TIDE, "crds": CRDS}}, "a machine")
    assert f"| story | {VERSIONS[0]} | {VERSIONS[-1]} |" in shown
    assert f"| tide story | {TIDE} | {TIDE} |" in shown
    assert f"| crds | {CRDS} | not run |" in shown


def test_what_a_page_says_is_read_back_so_that_a_run_of_other_stories_leaves_it() -> None:
    cells = {VERSIONS[0]: {"tide story": TIDE, "crds": CRDS}, VERSIONS[1]: {"crds": CRDS}}
    assert read_page(page(cells, "a machine")) == cells


def test_the_committed_page_is_read_whole_and_written_alike() -> None:
    text = (ROOT / "docs/kubernetes-versions.md").read_text()
    machine = text.partition("the last time on ")[2].partition(";")[0]
    assert page(read_page(text), machine) == text


def test_every_minor_version_that_the_chart_takes_is_tried() -> None:
    chart = yaml.safe_load((ROOT / "deploy/k8s/chart/Chart.yaml").read_text())
    minors = [int(version.split(".")[1]) for version in VERSIONS]
    assert minors == sorted(range(min(minors), max(minors) + 1), reverse=True)
    assert chart["kubeVersion"] == f">=1.{min(minors)}.0-0"
    assert f"Kubernetes 1.{min(minors)} to 1.{max(minors)}" in (ROOT / "docs/kubernetes.md").read_text()
