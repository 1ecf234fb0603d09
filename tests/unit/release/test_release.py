"""`make release` on a clone of a small checkout: what is written, committed and tagged, and what is refused and why."""

import os
import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from deploy.artifacts.checkout import ROOT
from deploy.release.texts import REPEATED, NotReleasable, newer, read_version, released, versions_in, with_version
from shared.build import VERSION

CHANGELOG = "# Changelog\n\nWords.\n\n## [Unreleased]\n\n### Added\n\n- A thing.\n\n## [0.0.1] - 2020-01-01\n\n- Old.\n"
MAKE = '#!/bin/sh\necho "$1" >>"$MADE"\n[ "$1" != "$BROKEN" ] || { echo "$1 says no" >&2; touch left-over; exit 1; }\n'

Released = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A clone with what names the version, committed."""
    folder = tmp_path / "checkout"
    for path in REPEATED:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text((ROOT / path).read_text())
    (folder / "CHANGELOG.md").write_text(CHANGELOG)
    git(tmp_path, "init", "--quiet", str(folder))
    for key, value in (("user.name", "Somebody"), ("user.email", "somebody@example.org")):
        git(folder, "config", key, value)
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "Everything")
    return folder


@pytest.fixture
def release(checkout: Path, tmp_path: Path) -> Released:
    """The command, with a `make` and a `helm` that note what they are asked."""
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("make", "helm"):
        (programs / name).write_text(MAKE)
        (programs / name).chmod(0o755)

    def run(
        *words: str, broken: str = "", path: str = f"{programs}:{os.environ['PATH']}"
    ) -> "subprocess.CompletedProcess[str]":
        given = {
            "PATH": path,
            "HOME": str(tmp_path),
            "PYTHONPATH": str(ROOT),
            "MADE": str(tmp_path / "made"),
            "BROKEN": broken,
        }
        return subprocess.run(
            [sys.executable, "-m", "deploy.release", *words, "--folder", str(checkout)],
            env=given, capture_output=True, text=True, check=False, cwd=tmp_path,
        )  # fmt: skip

    return run


def git(folder: Path, *words: str) -> str:
    return subprocess.run(["git", "-C", folder, *words], check=True, capture_output=True, text=True).stdout


def state(checkout: Path) -> tuple[str, str, str]:
    return git(checkout, "status", "--porcelain"), git(checkout, "rev-parse", "HEAD"), git(checkout, "tag")


def test_a_release_is_written_checked_committed_tagged_and_built(
    release: Released, checkout: Path, tmp_path: Path
) -> None:
    done = release("1.2.3")
    assert done.returncode == 0, done.stderr
    assert {one for path in REPEATED for one in versions_in(path, (checkout / path).read_text())} == {"1.2.3"}
    assert git(checkout, "log", "-1", "--format=%s").strip() == "Release 1.2.3"
    assert git(checkout, "cat-file", "-t", "v1.2.3").strip() == "tag"
    assert git(checkout, "status", "--porcelain") == ""
    made = (tmp_path / "made").read_text().split()
    assert made == ["schemas", "settings", "reference", "manifests", "lint", "type", "imports", "unit", "dist"]
    text = (checkout / "CHANGELOG.md").read_text()
    assert (
        text.index("## [Unreleased]")
        < text.index("## [1.2.3] - ")
        < text.index("- A thing.")
        < text.index("## [0.0.1]")
    )
    again = release("1.2.3")
    assert (again.returncode, "tag v1.2.3 exists already: give another VERSION" in again.stderr) == (1, True)


def test_a_dry_run_says_each_step_and_changes_nothing(release: Released, checkout: Path, tmp_path: Path) -> None:
    before = state(checkout)
    done = release("1.2.3", "--dry-run")
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 6
    for words in (f"write version 1.2.3 (now {VERSION})", "the section [1.2.3] - 20", "tag v1.2.3", "make dist"):
        assert words in done.stdout
    assert state(checkout) == before
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize("broken", ["reference", "unit"])
def test_where_a_step_fails_the_checkout_is_as_it_was(release: Released, checkout: Path, broken: str) -> None:
    before = state(checkout)
    done = release("1.2.3", broken=broken)
    assert (done.returncode, f"{broken} says no" in done.stderr) == (1, True)
    assert state(checkout) == before


def test_a_build_that_fails_behind_the_tag_says_that_it_is_there(release: Released, checkout: Path) -> None:
    done = release("1.2.3", broken="dist")
    assert (done.returncode, "v1.2.3 is tagged: mend the cause, and run make dist" in done.stderr) == (1, True)


def dirty(folder: Path) -> None:
    (folder / "new").touch()


def tagged(folder: Path) -> None:
    git(folder, "tag", "v2.0.0")


def silent(folder: Path) -> None:
    (folder / "CHANGELOG.md").write_text(CHANGELOG.replace("- A thing.\n", ""))
    git(folder, "commit", "--quiet", "--all", "--message", "Nothing to tell")


@pytest.mark.parametrize(
    ("version", "before", "words"),
    [
        ("1.2", None, "VERSION=1.2: want MAJOR.MINOR.PATCH"),
        ("v1.2.3", None, "VERSION=v1.2.3: want"),
        ("01.2.3", None, "want MAJOR"),
        ("1.2.3-final", None, "want MAJOR"),
        ("", None, "VERSION=: want MAJOR"),
        ("1.2.3", dirty, "1 files are not committed, the first is new"),
        ("2.0.0", tagged, "tag v2.0.0 exists already"),
        ("1.9.9", tagged, "VERSION=1.9.9 does not come after v2.0.0"),
        ("2.0.0-rc.1", tagged, "VERSION=2.0.0-rc.1 does not come after v2.0.0"),
        ("1.2.3", silent, "nothing stands below ## [Unreleased]"),
        ("0.0.1", None, "0.0.1 has a section already"),
    ],
)
def test_what_cannot_be_released_is_refused_with_the_reason(
    release: Released, checkout: Path, version: str, before: Callable[[Path], None] | None, words: str
) -> None:
    if before is not None:
        before(checkout)
    there = state(checkout)
    done = release(version)
    assert (done.returncode, "Traceback" in done.stderr) == (1, False)
    assert words in done.stderr
    assert state(checkout) == there


def test_without_helm_nothing_is_begun(release: Released, checkout: Path) -> None:
    there = state(checkout)
    done = release("1.2.3", path="/usr/bin:/bin")
    assert "helm is not on this machine" in done.stderr
    assert state(checkout) == there


def test_every_file_that_repeats_the_version_says_that_of_the_code() -> None:
    found = {path: versions_in(path, (ROOT / path).read_text()) for path in REPEATED}
    assert {one for versions in found.values() for one in versions} == {VERSION}
    assert len(found["deploy/k8s/chart/Chart.yaml"]) == 2


def test_versions_come_in_the_order_of_semantic_versioning() -> None:
    order = ["0.9.0", "0.10.0", "1.0.0-alpha.2", "1.0.0-beta.1", "1.0.0-rc.2", "1.0.0-rc.10", "1.0.0"]
    assert all(read_version(one) == one for one in order)
    assert all(newer(later, earlier) for earlier, later in pairwise(order))


def test_a_file_without_a_version_or_a_changelog_without_a_section_is_named() -> None:
    with pytest.raises(NotReleasable, match=r"pyproject\.toml: no line names the version"):
        with_version("pyproject.toml", "[project]\n", "1.0.0")
    with pytest.raises(NotReleasable, match="no section"):
        released("# Changelog\n", "1.0.0", "2026-01-01")
