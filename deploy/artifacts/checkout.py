"""The checkout that is built, and the programs of others that build it."""

import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from deploy import wheel_backend
from shared.build import VERSION

ROOT = Path(__file__).parents[2]


class ToolMissing(Exception):
    """A program that a part is built with is not on this machine; the text says which, and how to get it."""


class BuildError(Exception):
    """A part cannot be built; with the last words of the program that failed."""


@dataclass(frozen=True, slots=True)
class Checkout:
    """A tree of sources and what its artifacts say of it."""

    folder: Path
    epoch_s: int
    """The time that all files in them bear, in seconds since 1970."""
    version: str = VERSION


def this_checkout() -> Checkout:
    """The one that this module is in, as of SOURCE_DATE_EPOCH or of its commit."""
    return Checkout(ROOT, wheel_backend.epoch_s(ROOT))


def source_of(folder: Path) -> str:
    """Where others find the sources: the checkout's origin if it is an address of the web without a login, else ""."""
    told = subprocess.run(
        ["git", "-C", str(folder), "config", "--get", "remote.origin.url"], capture_output=True, text=True, check=False
    ).stdout.strip()
    return told if re.fullmatch(r"https://[^@\s]+", told) else ""


def run(words: Sequence[str | Path], *, env: Mapping[str, str] | None = None, cwd: Path | None = None) -> str:
    """A program's output.

    Raises:
        ToolMissing: it is not on this machine.
        BuildError: it failed.
    """
    try:
        done = subprocess.run(list(words), env=env, cwd=cwd, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise ToolMissing(f"{words[0]} is not on this machine") from None
    if done.returncode:
        last = "\n".join((done.stdout + done.stderr).strip().splitlines()[-10:])
        raise BuildError(f"{' '.join(map(str, words))}: exit code {done.returncode}\n{last}")
    return done.stdout


def pack(folder: Path, goal: Path, epoch: int, top: str) -> Path:
    """Pack the files of a folder under one top folder into a `.tar.gz` that depends on nothing else; its file."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    files = {f"{top}/{path.relative_to(folder)}": (path.read_bytes(), path.stat().st_mode) for path in paths}
    wheel_backend.write_archive(goal, files, epoch)
    return goal
