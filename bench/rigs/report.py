"""Rows of figures: the table that is printed, the file that is kept, and what the last run of this machine found."""

import argparse
import json
import os
import platform
import re
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from bench.rigs.disturbance import Disturbance
from shared.errors import Refused
from shared.text_file import read_text
from sublet.demo.load import percentile

OUT = Path("out/bench")
MOST_RUNS = 50
"""So many kept runs are looked at for what to compare with."""
_NUMBER = re.compile(r"\d+(?:\.\d+)?")


@dataclass(frozen=True, slots=True)
class Row:
    """One figure: what, how large, how often measured, and the target (docs/facts/targets.md#reaction-and-cost)."""

    what: str
    figure: str
    n: int
    target: str
    meanwhile: str = ""
    """What else the machine did; empty: nobody has looked."""
    day: str = ""
    """When it was measured, where that is another day than its table's."""


def observed(rows: Sequence[Row], disturbance: Disturbance, tries: int) -> list[Row]:
    """The rows with what others did while they were measured."""
    said = f"{disturbance}" if tries == 1 else f"{disturbance}, best of {tries}"
    return [replace(row, meanwhile=said) for row in rows]


def hardware() -> dict[str, str | int]:
    """What makes figures of two runs comparable."""
    rows = Path("/proc/cpuinfo").read_text().splitlines()
    model = next((row.partition(":")[2].strip() for row in rows if row.startswith("model name")), platform.machine())
    memory_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {"cpus": os.cpu_count() or 1, "model": model, "memory_gib": round(memory_bytes / (1 << 30))}


def machine() -> str:
    """This machine and day in one line."""
    return (
        f"{os.cpu_count()} CPUs, Linux {platform.release()}, Python {platform.python_version()}, "
        f"{datetime.now(UTC):%Y-%m-%d}"
    )


def p50_p99(values_s: Sequence[float]) -> str:
    """Median and 99th percentile in milliseconds."""
    if not values_s:
        return "nothing measured"
    return " / ".join(f"{(percentile(list(values_s), p) or 0) * 1000:.0f}" for p in (50, 99)) + " ms"


def progress(text: str) -> None:
    """One line that is written over, on a terminal; nothing otherwise."""
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def print_rows(rows: Sequence[Row]) -> None:
    """Print the rows of one part that is measured by itself, a line each."""
    progress("")
    print(machine())
    for row in rows:
        print(f"{row.what}: {row.figure}, N = {row.n}; target {row.target}")


def stage(text: str) -> None:
    """A line of what comes next, which stays where nothing can be written over."""
    if sys.stderr.isatty():
        progress(text)
    else:
        print(f"{datetime.now(UTC):%H:%M:%S} {text}", file=sys.stderr, flush=True)


def tell(rows: Sequence[Row]) -> None:
    """Print figures as soon as they are there: the table of all comes after the last part."""
    progress("")
    for row in rows:
        print(f"{datetime.now(UTC):%H:%M:%S} {row.what}: {row.figure}", file=sys.stderr, flush=True)


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a bench: what it is called, where and when it was, and its rows."""

    bench: str
    hardware: dict[str, str | int]
    machine: str
    rows: list[Row]

    @classmethod
    def here(cls, bench: str, rows: list[Row]) -> "Run":
        """One that has just ended on this machine."""
        return cls(bench, hardware(), machine(), rows)

    @property
    def day(self) -> str:
        """When it was: the end of the line about its machine."""
        return self.machine.rpartition(", ")[2]

    def text(self) -> str:
        """The run as JSON."""
        return json.dumps(asdict(self), indent=1) + "\n"


_RUN = TypeAdapter(Run)


def read_run(path: Path) -> Run:
    """The run of a file.

    Raises:
        Refused: it cannot be read, or is no run of a bench.
    """
    text = read_text(path, what="the run to compare with")
    try:
        return _RUN.validate_json(text)
    except ValidationError as error:
        raise Refused(
            f"{path}: not a run of a bench; name a file that make bench has written to {OUT}", reason="malformed"
        ) from error


def run_before(bench: str, against: Path | None, folder: Path = OUT) -> Run | None:
    """The run to compare with: the one named, else the newest kept here on hardware as this; None: there is none.

    Raises:
        Refused: the one named cannot be read.
    """
    return read_run(against) if against else _last_run(bench, folder)


def _last_run(bench: str, folder: Path) -> Run | None:
    """The newest one, with the newest figure of each row that it lacks: a run may have been of some parts alone.

    A row of an older run says that one's day.
    """
    here, newest = hardware(), None
    rows: dict[str, Row] = {}
    for file in sorted(folder.glob(f"{bench}-*.json"), reverse=True)[:MOST_RUNS]:
        try:
            run = read_run(file)
        except Refused:
            continue
        if run.hardware == here:
            newest = newest or run
            day = "" if run.day == newest.day else run.day
            rows = {row.what: replace(row, day=day) for row in run.rows} | rows
    return replace(newest, rows=list(rows.values())) if newest else None


def keep(run: Run, folder: Path = OUT) -> Path:
    """Write a run beside those before it."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{run.bench}-{datetime.now(UTC):%Y%m%d-%H%M%S}.json"
    file.write_text(run.text())
    return file


def changes(now: str, before: str) -> str:
    """The factor of each number of two figures; empty where they are not of one kind."""
    kinds, numbers = ([one(text) for text in (now, before)] for one in (_kind, _numbers))
    if kinds[0] != kinds[1] or not numbers[0]:
        return ""
    return " / ".join(f"x {new / old:.2f}" if old else "-" for new, old in zip(*numbers, strict=True))


def _kind(text: str) -> str:
    return _NUMBER.sub("#", text)


def _numbers(text: str) -> list[float]:
    return [float(word) for word in _NUMBER.findall(text)]


def table(run: Run, before: Run | None) -> str:
    """The run's rows, each beside its figure of the run before."""
    old = {row.what: row for row in before.rows} if before else {}
    cells = [("what", "figure", "N", "target", *(("before", "change") if before else ()), "meanwhile")]
    for row in run.rows:
        compared = _compared(row, old.get(row.what)) if before else ()
        cells.append((row.what, row.figure, str(row.n), row.target, *compared, row.meanwhile))
    widths = [max(len(line[place]) for line in cells) for place in range(len(cells[0]))]
    lines = [f"Sublet on {run.machine}"]
    if before:
        lines.append(f"before: {before.machine}{_other_hardware(run, before)}")
    for line in cells:
        padded = [f"{cell:<{width}}" for cell, width in zip(line, widths, strict=True)]
        lines.append("  ".join(padded).rstrip())
    return "\n".join(lines)


def _compared(row: Row, old: Row | None) -> tuple[str, str]:
    """The figure before, and the change."""
    if old is None:
        return "", ""
    return f"{old.figure} ({old.day})" if old.day else old.figure, changes(row.figure, old.figure)


def _other_hardware(run: Run, before: Run) -> str:
    """Say that the figures are of two machines; nothing where they are of one."""
    if before.hardware == run.hardware:
        return ""
    cpus, model, memory_gib = (before.hardware.get(key, "?") for key in ("cpus", "model", "memory_gib"))
    return f"; other hardware: {cpus} CPUs {model}, {memory_gib} GiB: a change says nothing of the software alone"


def add_options(words: argparse.ArgumentParser) -> None:
    """Add what every bench can be told about its table."""
    words.add_argument("--against", type=Path, metavar="FILE", help="the run to compare with; else the last one here")
    words.add_argument("-o", "--output", choices=("table", "json"), default="table")


def publish(run: Run, before: Run | None, output: str = "table", folder: Path = OUT) -> None:
    """Print a run beside one before it, and keep it."""
    print(table(run, before) if output == "table" else run.text())
    print(f"kept in {keep(run, folder)}", file=sys.stderr)
