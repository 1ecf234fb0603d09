"""`make bench-page`: how fluid the live page is with thousands of nodes, in a real Chromium that scrolls all the time.

Without a screen Chromium draws by the CPU alone. The first figure is what it manages with an empty page, and no other
can be better.
"""

import argparse
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from page_rig import LivePage, wait_for
from page_window import FRAMES_A_SECOND, browser

from bench.rigs.disturbance import Watch
from bench.rigs.report import Row, Run, add_options, observed, publish, run_before, stage

NAME = "page"
SIZES = (2_000, 10_000)
SPAN_MS = 10_000
TRIES = 3
TARGET = "60 /s"
EMPTY = "data:text/html,<div style='height:9000px'></div>"


@contextmanager
def window(address: str) -> Iterator[Any]:
    """A browser on this page."""
    shown = browser()
    try:
        shown.get(address)
        yield shown
    finally:
        shown.quit()


def scrolled(shown: Any, what: str, nodes: int, target: str) -> Row:
    """The best of some tries: what else the machine does can only take frames away."""
    watch = Watch()
    tries = [tuple(shown.execute_async_script(FRAMES_A_SECOND, SPAN_MS)) for _ in range(TRIES)]
    frames_per_s, worst_ms = max(tries)
    figure = f"{frames_per_s:.1f} /s, longest gap {worst_ms:.0f} ms"
    (row,) = observed([Row(what, figure, nodes, target)], watch.disturbance(), TRIES)
    return row


def measured(nodes: int) -> Row:
    """The page over so many nodes, whose figures move all the time."""
    stage(f"{nodes} nodes speak")
    with tempfile.TemporaryDirectory() as folder:
        page = LivePage(Path(folder), nodes)
        try:
            with window(page.url) as shown:
                drawn = "return Number(document.getElementById('map').dataset.nodes)"
                wait_for(lambda: shown.execute_script(drawn) == nodes, f"{nodes} nodes on the page")
                stage(f"{nodes} nodes: it is scrolled")
                return scrolled(shown, f"live page, {nodes} nodes, frames a second while it is scrolled", nodes, TARGET)
        finally:
            page.end()


def main() -> None:
    """Measure and print."""
    words = argparse.ArgumentParser(prog="make bench-page", description=__doc__)
    words.add_argument("nodes", nargs="*", type=int, default=SIZES, help="how many there are")
    add_options(words)
    chosen = words.parse_args()
    before = run_before(NAME, chosen.against)
    with window(EMPTY) as shown:
        rows = [scrolled(shown, "an empty page, frames a second while it is scrolled", 0, "-")]
    rows += [measured(nodes) for nodes in chosen.nodes]
    publish(Run.here(NAME, rows), before, chosen.output)


if __name__ == "__main__":
    main()
