"""`python -m deploy.audit`: audit by the package index, and where it cannot be asked by the list that is kept.

Exit code 0: looked up, nothing known; 1: something is known; 2: not done, since neither can speak for today.
`--update FOLDER` makes the list anew from a clone of the PyPA's advisory database (github.com/pypa/advisory-database).
"""

import argparse
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import yaml

from deploy.artifacts.checkout import ROOT, BuildError, run
from deploy.artifacts.licenses import PINNED
from deploy.audit.advisories import Kept, of_documents

KEPT = Path(__file__).with_name("advisories.json")
OF_PRODUCT = ("run", "kube", "trace", "authors")
MOST_AGE_DAYS = 30
"""An older list cannot say that nothing is known: advisories come every week."""
CLEAN, FOUND, NOT_DONE = 0, 1, 2


def main() -> int:
    """Audit, or make the list anew."""
    options = argparse.ArgumentParser(prog="python -m deploy.audit", description=main.__doc__)
    options.add_argument(
        "--pip-audit", type=Path, help="the program that asks the index; without it only the list is asked"
    )
    options.add_argument("--update", type=Path, metavar="FOLDER", help="a clone of the advisory database")
    given = options.parse_args()
    if given.update:
        return _update(given.update)
    if given.pip_audit:
        code, said = _ask_index(given.pip_audit)
        if code is not None:
            print(said)
            return code
        print(f"the index does not answer: {said}")
    code, lines = by_list(Kept.model_validate_json(KEPT.read_text()), pinned(OF_PRODUCT), datetime.now(UTC).date())
    print("\n".join(lines))
    return code


def by_list(kept: Kept, packages: dict[str, str], today: date) -> tuple[int, Sequence[str]]:
    """The verdict of the list, and what is printed."""
    age_days = (today - kept.until).days
    known = f"{len(packages)} packages against {kept.source} as of {kept.until} ({age_days} days ago)"
    if found := kept.found(packages):
        return FOUND, (known, *found)
    lacks = [f"{name}: was not looked up when the list was made" for name in kept.unknown(packages)]
    if age_days > MOST_AGE_DAYS:
        lacks.append(f"the list is {age_days} days old, want {MOST_AGE_DAYS} at most: what came later is not known")
    if lacks:
        return NOT_DONE, (f"{known}: nothing in it", *lacks, "audit: NOT DONE; with the index in reach: make audit")
    return CLEAN, (f"{known}: nothing known",)


def pinned(names: Iterable[str]) -> dict[str, str]:
    """Versions by package of requirement files."""
    texts = ((ROOT / f"requirements/{name}.txt").read_text() for name in names)
    return {match[1]: match[2] for text in texts for match in PINNED.finditer(text)}


def _ask_index(program: Path) -> tuple[int | None, str]:
    """The index' verdict and words; without a verdict where it cannot be asked."""
    files = [word for name in OF_PRODUCT for word in ("-r", str(ROOT / f"requirements/{name}.txt"))]
    words = [str(program), "--strict", "--disable-pip", "--require-hashes", "--progress-spinner", "off", *files]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    said = (done.stdout + done.stderr).strip()
    if done.returncode and "known vulnerabilit" not in said:
        return None, said.splitlines()[-1] if said else f"exit code {done.returncode}"
    return (FOUND if done.returncode else CLEAN), said


def _update(folder: Path) -> int:
    names = sorted(pinned(path.stem for path in (ROOT / "requirements").glob("*.txt")))
    try:
        revision, day = run(["git", "-C", folder, "log", "-1", "--format=%H %cs"]).split()
        documents = list(_documents(folder, names))
    except BuildError as error:
        print(f"audit: {error}", file=sys.stderr)
        return NOT_DONE
    kept = Kept(
        source="the PyPA's advisory database", license="CC-BY-4.0", revision=revision, until=date.fromisoformat(day),
        packages=of_documents(documents, names),
    )  # fmt: skip
    KEPT.write_text(kept.model_dump_json(indent=1, exclude_defaults=True) + "\n")
    total = sum(map(len, kept.packages.values()))
    print(f"{KEPT.name}: {total} advisories about {len(names)} packages, as of {day}")
    return CLEAN


def _documents(folder: Path, names: Iterable[str]) -> Iterator[dict[str, Any]]:
    listed = run(["git", "-C", folder, "ls-tree", "-r", "--name-only", "HEAD", "vulns/"]).splitlines()
    wanted = {f"vulns/{name}/" for name in names}
    for path in listed:
        if path.endswith((".yaml", ".yml")) and path[: path.rindex("/") + 1].lower().replace("_", "-") in wanted:
            yield yaml.safe_load(run(["git", "-C", folder, "show", f"HEAD:{path}"]))


if __name__ == "__main__":
    sys.exit(main())
