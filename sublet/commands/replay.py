"""`sublet replay`: recordings and public traces through sizing policies, to compare them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import typer

from sublet.completion.names import complete_peer, complete_policy
from sublet.replay.options import cores_list, finite
from sublet.terminal.formats import DOCUMENT, OutputFormat, document_text

FILES = typer.Argument(
    metavar="FILE...",
    help="Recordings, answers of Prometheus, public traces (docs/replay.md), or CSV files time_s,id,usage_cores.",
)
POLICY = typer.Option(
    "--policy",
    autocompletion=complete_policy,
    metavar="NAME[=ALIAS][:KEY=VALUE,…]",
    help="A policy, with settings of it or of the advisor; all without it.",
)
PEER = typer.Option(
    "--peer",
    autocompletion=complete_peer,
    metavar="NAME[=ALIAS][:KEY=VALUE,…]",
    help="katalyst or koordinator, with its knobs, or oracle: the most that is possible.",
)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(replay)


def replay(
    files: Annotated[list[Path], FILES],
    policy: Annotated[list[str] | None, POLICY] = None,
    peer: Annotated[list[str] | None, PEER] = None,
    file_format: Annotated[
        Literal["auto", "recording", "planetlab", "csv", "prometheus", "alibaba", "google", "azure", "bitbrains"],
        typer.Option("--format", help="auto: by the content."),
    ] = "auto",
    cpus: Annotated[int, typer.Option(min=1, max=8192, help="CPUs of a node; a recording says its own.")] = 48,
    pods_per_node: Annotated[
        int | None,
        typer.Option(min=0, help="Tenants on a node; 0: all. Without it what they request fills a PlanetLab node."),
    ] = None,
    pod_cores: Annotated[
        str,
        typer.Option(metavar="CORES[,CORES…]", help="Cores that a tenant requests; of several each has its own nodes."),
    ] = "4",
    seed: Annotated[int, typer.Option(help="Which tenants share a node.")] = 0,
    step: Annotated[
        float | None,
        typer.Option(
            min=0.1, max=3600, callback=finite, metavar="SECONDS", help="From frame to frame; 30, or the interval."
        ),
    ] = None,
    between: Annotated[
        Literal["hold", "linear", "phase"],
        typer.Option(help="Between two values: the first one, each tenant's at its own moment, or a straight line."),
    ] = "hold",
    nodes: Annotated[int, typer.Option(min=0, help="At most so many nodes of a file; 0: all.")] = 0,
    batch_pod_cores: Annotated[
        float, typer.Option(min=0.1, max=1000, callback=finite, help="Cores of one batch pod.")
    ] = 2.0,
    evict_after: Annotated[
        float,
        typer.Option(
            min=0, max=86400, callback=finite, metavar="SECONDS", help="How long more may run than is offered."
        ),
    ] = 60.0,
    batch_work: Annotated[
        float,
        typer.Option(
            min=0, max=31_536_000, callback=finite, metavar="SECONDS", help="After it a batch pod ends; 0: never."
        ),
    ] = 1800.0,
    frontier: Annotated[
        bool,
        typer.Option(
            "--frontier", help="Policies and peers at many settings: the most that can run at equal violations."
        ),
    ] = False,
    plot: Annotated[
        Path | None, typer.Option(help="Write a page with curves: of one node, or of the frontier.")
    ] = None,
    plot_node: Annotated[str, typer.Option(help="That node; without it the first one.")] = "",
    processes: Annotated[
        int,
        typer.Option(min=0, max=1024, help="That share the work; 0: as many as CPUs, if it is worth it."),
    ] = 0,
    ask: Annotated[
        list[str] | None,
        typer.Option(metavar="PATH", help="Of a cluster: what the metrics API answers when the recording ends."),
    ] = None,
    output: Annotated[str, DOCUMENT.option] = "table",
) -> None:
    """Replay traces through sizing policies and compare these. What each would have offered and what it withheld.

    The same functions decide as in the advisor. The same input gives the same output, byte for byte. A recording of a
    cluster (sublet record --cluster) is decided anew, beside what was decided then; a difference ends with 1.
    """
    import math
    import sys
    import time

    from shared.errors import BadConfig, Refused
    from sublet.replay import progress
    from sublet.replay.batch import BatchRules
    from sublet.replay.frontier.best import with_frontier
    from sublet.replay.frontier.sweep import families_of, texts_of
    from sublet.replay.job import ReplayJob, run_job, usual_processes
    from sublet.replay.report import table
    from sublet.replay.report.frontier import frontier_page, frontier_table
    from sublet.replay.report.page import node_page, write_page
    from sublet.replay.traces.tenants import Packing
    from sublet.terminal.stderr import print_error

    wanted, amounts = DOCUMENT.read(output), cores_list(pod_cores)
    if file_format in ("auto", "recording") and any(map(_is_of_cluster, files)):
        raise typer.Exit(_decide_anew(files, ask or (), wanted))
    if ask:
        raise BadConfig("--ask: want a recording of a cluster (sublet record --cluster)", reason="invalid")
    rules = BatchRules(batch_pod_cores, evict_after, batch_work or math.inf)
    packing = Packing(
        cpus=cpus,
        pods_per_node=pods_per_node,
        pod_cores=amounts[0],
        swept=amounts if len(amounts) > 1 else (),
        seed=seed,
        step_s=step,
        between=between,
        nodes=nodes,
    )
    families = families_of(policy or (), peer or ()) if frontier else []
    policies, peers = texts_of(families) if frontier else (policy or (), peer or ())
    job = ReplayJob(
        tuple(files),
        file_format,
        packing,
        tuple(policies),
        tuple(peers),
        rules,
        plot_node if plot and not frontier else None,
    )
    started_s = time.perf_counter()
    outcome = run_job(job, processes or usual_processes(job), lambda traces: progress.each(traces, sys.stderr))
    took_s = time.perf_counter() - started_s
    for line in progress.faults(outcome.faults):
        print_error(line)
    if outcome.frames == 0:
        raise Refused("no frame can be used", reason="malformed")
    found = table.document(outcome, [path.name for path in files], rules)
    if frontier:
        found = with_frontier(found, families)
    if plot:
        write_page(plot, frontier_page(found) if frontier else node_page(outcome, found, plot_node))
    as_table = frontier_table if frontier else table.table
    typer.echo(as_table(found) if wanted.is_table else document_text(found, wanted))
    typer.echo(progress.speed(outcome, took_s), err=True)


def _is_of_cluster(path: Path) -> bool:
    from sublet.replay.decisions.reading import is_cluster_recording

    try:
        with path.open("rb") as source:
            return is_cluster_recording(source)
    except OSError:  # said by whoever reads it as something else
        return False


def _decide_anew(files: list[Path], asked: Sequence[str], wanted: OutputFormat) -> int:
    from services.central.settings import KubernetesSettings
    from shared.errors import BadConfig
    from sublet.exit_codes import FAILED
    from sublet.replay import progress
    from sublet.replay.decisions import report
    from sublet.replay.decisions.reading import read_cluster_recording
    from sublet.replay.decisions.run import replay_decisions
    from sublet.terminal.stderr import print_error

    if len(files) > 1:
        raise BadConfig("replay: a recording of a cluster is replayed alone; name one FILE", reason="invalid")
    with files[0].open("rb") as source:
        recording = read_cluster_recording(files[0].name, source)
        outcome = replay_decisions(recording, KubernetesSettings(), asked)
    for line in progress.faults(recording.faults):
        print_error(line)
    found = report.document(outcome, files[0].name, recording.faults)
    typer.echo(report.table(found) if wanted.is_table else document_text(found, wanted))
    return FAILED if outcome.total("different") else 0
