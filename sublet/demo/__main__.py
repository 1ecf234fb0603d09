"""`make demo`: look at the machine, tell the story, write the report; only what Sublet itself failed in is an error."""

import asyncio
import os
import platform
import sys
import tempfile
import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console

from shared.errors import Conflict, SubletError
from shared.settings import CommonSettings
from shared.telemetry import setup_logging
from sublet.demo import report
from sublet.demo.report import DemoRun
from sublet.demo.story import SHORT_TITLES
from sublet.demo.verdict import failed
from sublet.host.preflight import check_host, take_host
from sublet.output import printable, table_of

OUT = Path("out/demo")
STYLES = {"shown": "green", "not shown": "yellow", "failed": "red"}


def run_demo(out: Path = OUT, *, on_simulator: bool = False, dry_run: bool = False) -> int:
    """Run the demo and write its report; 1 if Sublet failed in something, 2 if it could not begin.

    Raises:
        Refused: the report cannot be written there.
    """
    console = Console()
    setup_logging("demo", "demo", as_json=False, level="error")
    why_not = ["as you asked"] if on_simulator else _not_on_this_host()
    if dry_run:
        where = (
            f"a simulated machine ({'; '.join(why_not)})" if why_not else "this machine's cgroups, which it restores"
        )
        words = f"the demo would run on {where}, and write {out / 'report.html'} (dry run)"
        console.print(printable(words), soft_wrap=True, highlight=False, markup=False)
        return 0
    report.prepare(out)
    started = time.monotonic()
    try:
        with tempfile.TemporaryDirectory(prefix="sublet-demo-") as folder:
            if why_not:
                console.print(
                    f"[b]Not on real cgroups here:[/b] {'; '.join(why_not)}\nRunning on the simulator instead."
                )
                run = _on_simulator(Path(folder), console)
            else:
                run = asyncio.run(_on_host(Path(folder), console))
    except SubletError as error:
        console.print(f"demo: {error}", style="red", markup=False)
        return 2
    facts = {
        "machine": f"{os.cpu_count()} CPUs, Linux {platform.release()}, Python {platform.python_version()}",
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "substrate": "sim" if why_not else "host",
    }
    run = replace(run, machine=facts)
    report.write(out, run)
    _print(console, run)
    console.print(f"report: {out / 'report.html'}, {out / 'report.json'}   ({time.monotonic() - started:.0f} s)")
    return 1 if failed(run.claims) else 0


def _not_on_this_host() -> list[str]:
    """Why the demo cannot use this machine's cgroups; empty where it can."""
    common = CommonSettings()
    if missing := check_host(common):
        return missing
    try:
        held = take_host(common)
    except Conflict as error:
        return [str(error)]
    if held is not None:
        os.close(held)
    return []


async def _on_host(folder: Path, console: Console) -> DemoRun:
    from sublet.demo.case import AFTER_S, SPIKE_S, STEADY_S
    from sublet.demo.host import HostStage
    from sublet.demo.story import play
    from sublet.demo.verdict import judge

    story = await play(HostStage(folder, console.print), console.print)
    eviction = story.eviction
    return DemoRun(
        claims=judge(story),
        disturbed=story.disturbed,
        readings=story.readings,
        figures={case.name: case.summary() for case in story.cases},
        curves=[
            report.RunCurves(
                case.title,
                case.moments,
                case.spike_s,
                case.spike_end_s,
                [(a.due_s, None if a.latency_s is None else a.latency_s * 1000) for a in case.answers],
            )
            for case in story.cases
        ],
        cpus=os.cpu_count() or 1,
        before_s=STEADY_S,
        after_s=SPIKE_S + AFTER_S,
        spike_to_cpuset_s=next((case.shrink_s for case in story.cases if case.name == "sublet"), None),
        breach_to_call_s=eviction.breach_to_call_s if eviction else None,
        chain=eviction.chain if eviction else [],
        loads=story.loads,
    )


def _on_simulator(folder: Path, console: Console) -> DemoRun:
    from sublet.demo.simulated import play_simulated

    return play_simulated(folder / "state", console.print)


def _print(console: Console, run: DemoRun) -> None:
    names, cases = [SHORT_TITLES[name] for name in run.figures], list(run.figures.values())
    rows = [
        [words, *("" if case.get(key) is None else str(case[key]) for case in cases)]
        for key, words in report.ROWS
        if any(case.get(key) is not None for case in cases)
    ]
    console.print(f"\n[b]{report.headline(run)}[/b]\n")
    console.print(table_of(["", *names], rows, right=range(1, len(cases) + 1)))
    console.print()
    for row in run.chain:
        text = f"  {row['at_s']:+7.3f} s  {row['message']:<16} {row['data'].get('message', '')}"
        console.print(printable(text), highlight=False, markup=False, soft_wrap=True)
    for claim in run.claims:
        line = f"{report.MARKS[claim.outcome][0]:<12} {claim.text}" + (f" ({claim.why})" if claim.why else "")
        console.print(printable(line), style=STYLES[claim.outcome], highlight=False, markup=False, soft_wrap=True)
    if run.disturbed:
        console.print("\nOther work disturbed the measurements; an idle machine shows more:", style="yellow")
        for line in run.disturbed:
            console.print(f"  {line}", highlight=False, markup=False, soft_wrap=True)


if __name__ == "__main__":
    sys.exit(run_demo(on_simulator="--sim" in sys.argv[1:]))
