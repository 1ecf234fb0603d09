"""The licenses of what Sublet is installed with, as each package's own metadata names them: docs/licenses.md.

`python -m deploy.artifacts.licenses` writes the page anew; a test compares it, and each license with those allowed.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.metadata import PackageMetadata, metadata
from pathlib import Path

from deploy.artifacts.checkout import ROOT

PAGE = ROOT / "docs/licenses.md"
REQUIREMENTS = ("run", "kube", "trace", "authors")
"""What a user may install: the wheel's own and those of each extra."""
PINNED = re.compile(r"^([a-z0-9][a-z0-9._-]*)==(\S+)", re.MULTILINE)
ALLOWED = frozenset({"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT", "MIT-0", "MPL-2.0", "PSF-2.0"})
"""What may be distributed beside Apache-2.0; MPL-2.0 asks for its own files' sources alone, which wheels are."""
SPOKEN = {
    "Apache 2.0": "Apache-2.0",
    "Apache License 2.0": "Apache-2.0",
    "Apache License Version 2.0": "Apache-2.0",
    "Apache License, Version 2.0": "Apache-2.0",
    "Apache Software License": "Apache-2.0",
    "BSD License": "BSD-3-Clause",
    "3-Clause BSD License": "BSD-3-Clause",
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
}
"""Names in older metadata, and their identifiers of SPDX."""


@dataclass(frozen=True, slots=True)
class Licensed:
    """A pinned package and its license: an expression of SPDX, or the words of its metadata where there is none."""

    name: str
    version: str
    license: str


def pinned() -> dict[str, str]:
    """Version by name of everything that is pinned in `REQUIREMENTS`."""
    texts = ((ROOT / f"requirements/{name}.txt").read_text() for name in REQUIREMENTS)
    return {match[1]: match[2] for text in texts for match in PINNED.finditer(text)}


def licensed(names: Iterable[str]) -> Iterator[Licensed]:
    """Each package by its name.

    Raises:
        PackageNotFoundError: one of them is not installed here; `make setup` installs all.
    """
    for name in sorted(names):
        told = metadata(name)
        yield Licensed(name, told["Version"], license_of(told))


def license_of(told: PackageMetadata) -> str:
    """The license that metadata names: by an expression, else by a short field, else by a classifier."""
    expression, field = (str(told[name]) if name in told else "" for name in ("License-Expression", "License"))
    if expression:
        return expression
    classifiers: list[str] = [
        one.rsplit(" :: ", 1)[-1] for one in told.get_all("Classifier") or [] if one.startswith("License ::")
    ]
    for words in (*([field] if field and "\n" not in field else []), *classifiers):
        if words in ALLOWED or words in SPOKEN:
            return SPOKEN.get(words, words)
    return field.splitlines()[0] if field else (classifiers or ["none named"])[0]


def parts(expression: str) -> set[str]:
    """The licenses of an expression; of a choice by OR one that is allowed is enough."""
    found = set()
    for part in re.split(r"\s+AND\s+", expression.replace("(", " ").replace(")", " ")):
        choice = [word.strip() for word in re.split(r"\s+OR\s+", part)]
        found.add(next((word for word in choice if word in ALLOWED), choice[0]))
    return found


def page(packages: Iterable[Licensed]) -> str:
    """The text of docs/licenses.md."""
    lines = [
        "# Licenses of what Sublet is installed with",
        "",
        "Made by `make licenses` from the metadata of the packages that `requirements/*.txt` pin; why each is there:",
        "[dependencies.md](dependencies.md). Sublet itself is under the [Apache License 2.0](../LICENSE). uPlot (MIT)",
        "lies with its license in `sublet/pages/vendor`.",
        "",
        "| package | version | license |",
        "|---|---|---|",
    ]
    return "\n".join([*lines, *(f"| {one.name} | {one.version} | {one.license} |" for one in packages)]) + "\n"


def main(path: Path = PAGE) -> None:
    """Write the page."""
    path.write_text(page(licensed(pinned())))


if __name__ == "__main__":
    main()
