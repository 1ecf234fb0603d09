"""`make demo`: tell the story, write the report, and fail if the story did not happen."""

import asyncio
import os
import platform
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from shared.errors import SubletError
from shared.settings import CommonSettings
from shared.telemetry import setup_logging
from sublet.demo import report
from sublet.host.preflight import check_host

OUT = Path("out/demo")


def main() -> int:
    """Run the demo; 0 if everything happened that should."""
    console = Console()
    setup_logging("demo", "demo", as_json=False, level="error")
    missing = check_host(CommonSettings())
    simulated = bool(missing) or "--sim" in sys.argv[1:]
    started = time.monotonic()
    facts: dict[str, Any] = {
        "machine": f"{os.cpu_count()} CPUs, Linux {platform.release()}, Python {platform.python_version()}",
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "substrate": "sim" if simulated else "host",
    }
    try:
        with tempfile.TemporaryDirectory(prefix="sublet-demo-") as folder:
            state_dir = Path(folder) / "state"
            if simulated:
                console.print(
                    "[b]Not on real cgroups here:[/b] "
                    + ("; ".join(missing) or "as you asked")
                    + "\nRunning on the simulator instead."
                )
                document, plots = _on_simulator(state_dir, facts, console)
            else:
                document, plots = asyncio.run(_on_host(state_dir, facts, console))
    except SubletError as error:
        console.print(f"[red]demo: {error}[/red]")
        return 2
    report.write(OUT, document, plots)
    _print(console, document)
    console.print(f"report: {OUT / 'report.html'}, {OUT / 'report.json'}   ({time.monotonic() - started:.0f} s)")
    return 1 if document["faults"] else 0


async def _on_host(state_dir: Path, facts: dict[str, Any], console: Console) -> tuple[dict[str, Any], str]:
    from sublet.demo.story import play

    story = await play(state_dir, console.print)
    facts |= {
        "spike_to_cpuset_s": next((c.shrink_s for c in story.cases if c.name == "sublet"), None),
        "breach_to_call_s": story.breach_to_call_s,
        "chain": story.chain,
        "services": story.services,
        "faults": story.faults,
    }
    return report.figures(facts, story.cases), report.host_plots(story.cases, os.cpu_count() or 1)


def _on_simulator(state_dir: Path, facts: dict[str, Any], console: Console) -> tuple[dict[str, Any], str]:
    from sublet.demo.simulated import play_simulated

    return play_simulated(state_dir, facts, console.print)


def _print(console: Console, document: dict[str, Any]) -> None:
    table = Table(title="Sublet: the main job", title_justify="left")
    cases = list(document["cases"].values())
    table.add_column("")
    for case in cases:
        table.add_column(case["title"], justify="right")
    for key, words in report.ROWS:
        if any(case.get(key) is not None for case in cases):
            table.add_row(words, *("-" if case.get(key) is None else str(case[key]) for case in cases))
    console.print(table)
    for key, words in (
        ("spike_to_cpuset_s", "spike to changed cpuset"),
        ("breach_to_call_s", "memory breach to eviction call"),
    ):
        if document.get(key) is not None:
            console.print(f"{words}: [b]{document[key] * 1000:.0f} ms[/b]")
    for row in document["chain"]:
        console.print(
            f"  {row['at_s']:+7.3f} s  {row['message']:<16} {row['data'].get('message', '')}", highlight=False
        )
    for fault in document["faults"]:
        console.print(f"[red]did not happen: {fault}[/red]")


if __name__ == "__main__":
    sys.exit(main())
