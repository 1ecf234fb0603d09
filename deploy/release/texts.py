"""Where the version stands, and how a changelog becomes that of a release. Pure.

`shared/build.py` is the place; the other files repeat it for those who read them without Python, and a test compares.
"""

import re
from collections.abc import Mapping

from packaging.version import Version

# Of https://semver.org what a wheel's version can say as well; a tag of an image has no plus sign.
SEMVER = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(?:-(alpha|beta|rc)\.(0|[1-9]\d*))?")
UNRELEASED = "## [Unreleased]"
HEADING = re.compile(r"^## ", re.MULTILINE)
OF_THE_CODE = re.compile(r'^VERSION = "([^"]*)"$', re.MULTILINE)
REPEATED: Mapping[str, re.Pattern[str]] = {
    "shared/build.py": OF_THE_CODE,
    "pyproject.toml": re.compile(r'^version = "([^"]*)"$', re.MULTILINE),
    "docs/host.md": re.compile(r"\bsublet_(\d[^_\s]*)_amd64\.deb"),
    "docs/kubernetes.md": re.compile(r" sublet:(\d\S*) "),
    "deploy/k8s/chart/Chart.yaml": re.compile(r'^(?:version: |appVersion: ")([^"\n]*)"?$', re.MULTILINE),
}


class NotReleasable(Exception):
    """Something stands against the release; the message names it, and what to do."""


def read_version(text: str) -> str:
    """A version that is asked for.

    Raises:
        NotReleasable: it is none of Semantic Versioning.
    """
    if not SEMVER.fullmatch(text):
        raise NotReleasable(
            f"VERSION={text}: want MAJOR.MINOR.PATCH, with -alpha.N, -beta.N or -rc.N behind it or not, and no v"
        )
    return text


def newer(version: str, than: str) -> bool:
    """Whether a version comes after another."""
    return Version(version) > Version(than)


def with_version(path: str, text: str, version: str) -> str:
    """A file's text with another version in it.

    Raises:
        NotReleasable: there is none in it.
    """
    pattern = REPEATED[path]
    if not pattern.search(text):
        raise NotReleasable(f"{path}: no line names the version")
    return pattern.sub(lambda found: found[0].replace(found[1], version), text)


def versions_in(path: str, text: str) -> list[str]:
    """Each version that a file names as that of Sublet."""
    return REPEATED[path].findall(text)


def released(changelog: str, version: str, day: str) -> str:
    """The changelog in which what was not released has a version and a day, and nothing is unreleased.

    Raises:
        NotReleasable: nothing is, or the version has a section already.
    """
    before, found, rest = changelog.partition(f"{UNRELEASED}\n")
    if not found:
        raise NotReleasable(f"CHANGELOG.md: no section {UNRELEASED}")
    if re.search(rf"^## \[{re.escape(version)}\]", changelog, re.MULTILINE):
        raise NotReleasable(f"CHANGELOG.md: {version} has a section already: give another VERSION")
    section = HEADING.split(rest, maxsplit=1)[0]
    if not any(line.startswith("- ") for line in section.splitlines()):
        raise NotReleasable(f"CHANGELOG.md: nothing stands below {UNRELEASED}: write what users notice")
    return f"{before}{UNRELEASED}\n\n## [{version}] - {day}\n{rest}"
