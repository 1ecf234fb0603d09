"""Where a process' CPU time goes: stacks that py-spy has sampled, by the part of Sublet that was at work."""

import re
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

SAMPLES_PER_S = 250
_SPY = Path(sys.executable).with_name("py-spy")
_PLACES = (
    (re.compile(r"/services/metrics/sources/(\w+)\.py"), "metrics: source {}"),
    (re.compile(r"/services/(\w+)/"), "{}"),
)
_BELOW = (
    (re.compile(r"/shared/adapters/kube"), "clients of the API server"),
    (re.compile(r"/nats/|/shared/adapters/nats"), "connection to NATS"),
    (re.compile(r"/shared/|/sublet/"), "shared code"),
    (re.compile(r"/asyncio/|/selectors\.py"), "event loop"),
)
"""Where none of the services is on the stack."""
_IDLE = re.compile(r"/(selectors|threading|queue|concurrent/futures/thread)\.py:\d+\)$")
"""Innermost frames of threads that wait; py-spy does not know all of them."""
OTHER, SMALL = "no part known", "smaller parts"
LEAST_SHARE = 0.01
"""Of the time: less is no row of its own."""


def sampled(pid: int, span_s: float, file: Path) -> dict[str, float]:
    """Shares of the time that a Python process was running, by part, over a span; empty: nothing was seen.

    The stacks stay in the file, as flame graphs are made of them.

    Raises:
        RuntimeError: py-spy says no, with its last words.
    """
    spy = shutil.which(_SPY) or shutil.which("py-spy")
    if spy is None:
        raise RuntimeError("py-spy is not installed; make setup installs it")
    file.parent.mkdir(parents=True, exist_ok=True)
    words = [spy, "record", "--pid", str(pid), "--duration", f"{span_s:.0f}", "--rate", str(SAMPLES_PER_S),
             "--format", "raw", "--full-filenames", "--output", str(file)]  # fmt: skip
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"py-spy on process {pid}: {(done.stderr or done.stdout).strip()[-400:]}")
    return shares(file.read_text().splitlines()) if file.exists() else {}


def shares(stacks: Sequence[str]) -> dict[str, float]:
    """Shares by part, largest first, of lines as `frame;frame;frame 17`, the outermost first; without who waits."""
    counts: defaultdict[str, int] = defaultdict(int)
    for stack, count in _lines(stacks):
        counts[part_of(stack)] += count
    whole = sum(counts.values())
    return {part: counts[part] / whole for part in sorted(counts, key=lambda part: (-counts[part], part))}


def _lines(stacks: Sequence[str]) -> Iterator[tuple[str, int]]:
    for line in stacks:
        stack, _, count = line.rpartition(" ")
        if stack and count.isdecimal() and not _IDLE.search(stack):
            yield stack, int(count)


def part_of(stack: str) -> str:
    """The part that was at work: of the innermost frame that belongs to a service, else to what services share."""
    frames = stack.split(";")[::-1]
    for places in (_PLACES, _BELOW):
        for frame in frames:
            for pattern, name in places:
                if found := pattern.search(frame):
                    return name.format(*found.groups())
    return OTHER


def without_small(parts: Mapping[str, float], least: float = LEAST_SHARE) -> dict[str, float]:
    """The same shares, with parts below the least added up at the end."""
    found = {part: share for part, share in parts.items() if share >= least}
    left = sum(parts.values()) - sum(found.values())
    return {**found, SMALL: left} if len(found) < len(parts) else found
