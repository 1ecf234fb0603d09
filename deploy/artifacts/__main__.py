"""`python -m deploy.artifacts`: build what a release consists of into a folder, with checksums and a table."""

import argparse
import hashlib
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from rich.console import Console
from rich.table import Table

from deploy.artifacts import chart, debian, distributions, images, share
from deploy.artifacts.checkout import ROOT, BuildError, Checkout, ToolMissing, this_checkout

PARTS: dict[str, Callable[[Checkout, Path], list[Path]]] = {
    "python": distributions.build,
    "share": share.build,
    "chart": chart.build,
    "debian": debian.build,
    "images": images.build,
}
SUMS = "SHA256SUMS"


def main() -> int:
    """Build the parts that are named, or all; 1 where one that was asked for cannot be built."""
    options = argparse.ArgumentParser(prog="python -m deploy.artifacts", description=main.__doc__)
    options.add_argument("parts", nargs="*", metavar="PART", help=f"{', '.join(PARTS)}; all if none is named")
    options.add_argument("--into", type=Path, default=ROOT / "dist", help="folder; dist")
    given = options.parse_args()
    if unknown := [name for name in given.parts if name not in PARTS]:
        options.error(f"no such part: {', '.join(unknown)}; there are {', '.join(PARTS)}")
    try:
        made, skipped = build(given.parts or list(PARTS), given.into)
    except BuildError as error:
        print(f"dist: {error}", file=sys.stderr)
        return 1
    _print(made)
    for name, why in skipped.items():
        print(f"skipped {name}: {why}")
    return 1 if any(name in given.parts for name in skipped) else 0


def build(parts: Iterable[str], goal: Path) -> tuple[list[Path], dict[str, str]]:
    """Build parts and write the checksums of all; files, and parts that nothing here can build, with why.

    Raises:
        BuildError: a part cannot be built though its tools are there.
    """
    goal.mkdir(parents=True, exist_ok=True)
    checkout = this_checkout()
    made: list[Path] = []
    skipped: dict[str, str] = {}
    for name in parts:
        started_s = time.monotonic()
        try:
            made += PARTS[name](checkout, goal)
        except ToolMissing as error:
            skipped[name] = str(error)
            continue
        print(f"{name:<8} {time.monotonic() - started_s:5.1f} s", file=sys.stderr)
    sums = "".join(f"{digest(path)}  {path.name}\n" for path in sorted(made))
    (goal / SUMS).write_text(sums)
    return made, skipped


def digest(path: Path) -> str:
    """SHA-256 of a file, as `sha256sum --check` reads it."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _print(made: Iterable[Path]) -> None:
    table = Table("file", "MiB", "sha256", box=None)
    for path in made:
        table.add_row(path.name, f"{path.stat().st_size / 2**20:.2f}", digest(path)[:16])
    Console(soft_wrap=True).print(table)


if __name__ == "__main__":
    sys.exit(main())
