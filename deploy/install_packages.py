"""`python deploy/install_packages.py FILE`: install pinned requirements, and say how far it is where somebody looks.

At a terminal one line counts packages; elsewhere, as in a log of CI, it is one line in all. It runs before anything is
installed, and so needs nothing but pip.
"""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TextIO

PINNED = re.compile(r"^[a-zA-Z0-9][a-zA-Z0-9._-]*==", re.MULTILINE)
FETCHED = re.compile(r"^Collecting ([a-zA-Z0-9][a-zA-Z0-9._-]*)")
UNPACKING = re.compile(r"^Installing collected packages")
PIP = ("-m", "pip", "install", "--disable-pip-version-check", "--progress-bar", "off", "--require-hashes", "-r")
LAST_LINES = 15


def said(lines: Iterator[str], total: int) -> Iterator[str]:
    """What to show after each line of pip's."""
    found = 0
    for line in lines:
        if match := FETCHED.match(line.lstrip()):
            found += 1
            yield f"package {found} of {total}: {match[1]}"
        elif UNPACKING.match(line):
            yield f"installing {total} packages"


def main(file: Path, out: TextIO = sys.stdout) -> int:
    """Install; pip's exit code, with its last lines where it failed."""
    total = len(PINNED.findall(file.read_text()))
    print(f"{file}: {total} packages, a minute where none is kept from before", file=out, flush=True)
    kept: list[str] = []

    def lines(pipe: IO[str]) -> Iterator[str]:
        for line in pipe:
            kept.append(line)
            yield line

    command = [sys.executable, *PIP, str(file)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as pip:
        assert pip.stdout is not None  # noqa: S101 - asked for above
        for words in said(lines(pip.stdout), total):
            if out.isatty():
                print(f"\r\x1b[K{words}", end="", file=out, flush=True)
    if out.isatty():
        print("\r\x1b[K", end="", file=out, flush=True)
    if pip.returncode:
        print("".join(kept[-LAST_LINES:]), end="", file=sys.stderr)
    return pip.returncode


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
