"""`make bench-images`: how large each image is, and how long it takes to be of use, on an engine of the tests' own."""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from unittest.mock import patch

from compose_rig.engine import Engine, base_image, running
from compose_rig.parts import ENGINE
from compose_rig.project import environment
from rig.packages import RigMissing

from bench.rigs.disturbance import Watch
from bench.rigs.report import Row, Run, add_options, observed, progress, publish, run_before
from deploy.artifacts import images
from deploy.artifacts.checkout import this_checkout
from shared.errors import Refused

NAME = "images"
RUNS, LIMIT_S = 5, 120.0
HELD = ("run", "--rm", "--read-only", "--cap-drop", "ALL", "--network", "none", "--tmpfs", "/tmp:uid=10001",
        "--tmpfs", "/var/lib/sublet:uid=10001", "--env", "SUBLET_STATE_DIR=/var/lib/sublet")  # fmt: skip
UP = ("sublet", "up", "--substrate", "sim", "--nats-port", "0")
IS_UP = "Sublet is up"


def start_s(image: str, words: Sequence[str], until: str) -> float:
    """Seconds from `docker run` until the container has printed some words.

    Raises:
        RuntimeError: it ended, or the limit passed, without them.
    """
    began_s = time.monotonic()
    name = f"sublet-bench-{os.getpid()}"
    process = subprocess.Popen(
        ["docker", *HELD, "--name", name, image, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    said: list[str] = []
    try:
        assert process.stdout is not None
        for line in process.stdout:
            said.append(line)
            if until in line:
                return time.monotonic() - began_s
            if time.monotonic() - began_s > LIMIT_S:
                break
    finally:
        subprocess.run(["docker", "kill", name], capture_output=True, check=False)
        process.wait()
    raise RuntimeError(f"{image} {' '.join(words)}: no {until!r}\n{''.join(said[-10:])}")


def rows_of(engine: Engine, made: Sequence[Path]) -> list[Row]:
    """Sizes of every image, and starts."""
    version = this_checkout().version
    rows: list[Row] = []
    for name in images.TARGETS.values():
        tag = f"{name}:{version}"
        (archive,) = (path for path in made if path.name == f"{name}-{version}.image.tar")
        unpacked = int(engine.docker("image", "inspect", "--format", "{{.Size}}", tag))
        rows.append(Row(f"{name}: download, base included", f"{archive.stat().st_size / 1e6:.0f} MB", 1, ""))
        rows.append(Row(f"{name}: on disk, base included", f"{unpacked / 1e6:.0f} MB", 1, ""))
        progress(f"{name} starts")
        taken = [start_s(tag, ("sublet", "--version"), "sublet ") for _ in range(RUNS)]
        rows.append(Row(f"{name}: docker run sublet --version, median", f"{statistics.median(taken):.1f} s", RUNS, ""))
    progress("a simulated machine starts")
    taken = [start_s(f"sublet:{version}", UP, IS_UP) for _ in range(RUNS)]
    rows.append(
        Row("sublet: docker run until a simulated machine is up, median", f"{statistics.median(taken):.1f} s", RUNS, "")
    )
    return rows


def main() -> int:
    """Build the images, measure, and print."""
    words = argparse.ArgumentParser(prog="make bench-images", description=__doc__)
    add_options(words)
    chosen = words.parse_args()
    try:
        before = run_before(NAME, chosen.against)
        ENGINE.require_tools()
    except (Refused, RigMissing) as error:
        print(f"bench: {error}", file=sys.stderr)
        return 2
    with ExitStack() as held:
        cache = held.enter_context(ENGINE.cache_held())
        engine = held.enter_context(running(cache))
        held.enter_context(patch.dict(os.environ, environment(engine, base_image(engine, cache, progress))))
        place = held.enter_context(tempfile.TemporaryDirectory())
        progress("building the images")
        made = images.build(this_checkout(), Path(place))
        watch = Watch()
        rows = observed(rows_of(engine, made), watch.disturbance(), 1)
    progress("")
    publish(Run.here(NAME, rows), before, chosen.output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
