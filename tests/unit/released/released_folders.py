"""A folder for each version keeps what that version writes; a released one never changes.

`python -m released_folders` (`make schemas`) writes that of the version under way anew.
"""

import hashlib
import re
import shutil
from pathlib import Path

from state_of_a_cluster import write_cluster
from state_of_a_node import write_state

from shared.build import VERSION

ROOT = Path(__file__).parents[3]
RELEASED = ROOT / "tests/fixtures/released"
CHANGELOG = ROOT / "CHANGELOG.md"
NEWEST = RELEASED / VERSION


def write_folder(folder: Path) -> None:
    """Write what this version writes."""
    folder.mkdir(parents=True)
    write_state(folder)
    write_cluster(folder)


def sums(folder: Path) -> str:
    """A line for each file, as sha256sum prints and checks them."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    lines = (f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.relative_to(folder)}\n" for path in files)
    return "".join(lines)


def sums_file(folder: Path) -> Path:
    """Where the sums of a version's folder stand."""
    return folder.with_name(f"{folder.name}.sha256")


def is_released(version: str, changelog: str) -> bool:
    """Whether the changelog has a heading of this version."""
    return re.search(rf"(?m)^## \[{re.escape(version)}\]", changelog) is not None


def write_newest(newest: Path = NEWEST, changelog: str = "") -> None:
    """Write the folder of the version under way anew, and its sums.

    Raises:
        SystemExit: that version is released, and what it writes has changed.
    """
    fresh = newest.with_name(f".{newest.name}.new")
    shutil.rmtree(fresh, ignore_errors=True)
    write_folder(fresh)
    known = sums_file(newest)
    if is_released(newest.name, changelog) and known.read_text() != sums(fresh):
        shutil.rmtree(fresh)
        raise SystemExit(f"{newest}: {newest.name} is released and stays; give shared/build.py the next version first")
    shutil.rmtree(newest, ignore_errors=True)
    fresh.rename(newest)
    known.write_text(sums(newest))


if __name__ == "__main__":
    write_newest(changelog=CHANGELOG.read_text())
