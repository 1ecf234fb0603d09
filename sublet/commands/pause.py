"""`sublet pause` and `sublet resume`: the hand brake on the evictions of this node, of a pool, or of a cluster."""

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sublet.cluster.options import KubeconfigOption, SystemOption
from sublet.terminal.dry_run import DryRun
from sublet.terminal.formats import DOCUMENT, OutputFormat, document_text

if TYPE_CHECKING:
    from sublet.cluster.pausing import Meant

Output = Annotated[str, DOCUMENT.option]
Cluster = Annotated[bool, typer.Option("--cluster", help="Of all nodes of a cluster, by its API server.")]
Pool = Annotated[
    str, typer.Option("--pool", help="Of the nodes of a cluster whose label node.kubernetes.io/pool is so.")
]


def register(app: typer.Typer) -> None:
    """Add both commands."""
    app.command()(pause)
    app.command()(resume)


def pause(
    reason: Annotated[str, typer.Option("--reason", "-r", help="Why; shown in sublet status.")] = "by hand",
    for_how_long: Annotated[
        str, typer.Option("--for", metavar="DURATION", help="End by itself after 90s, 30m, 2h or 1d.")
    ] = "",
    cluster: Cluster = False,
    pool: Pool = "",
    dry_run: DryRun = False,
    output: Output = "table",
    kubeconfig: KubeconfigOption = None,
    system: SystemOption = "sublet-system",
) -> None:
    """Stop all evictions of this node, a pool or a cluster at once. Until `sublet resume`, or for a duration.

    On this node it needs neither the bus nor central, holds through restarts, and the evictor is asked afterwards.
    Of a pool or a cluster it is one key of the ConfigMap sublet-pauses, which central hands to every node, and follows
    itself. A pod that has already been told to end still ends. An end is meant by the clock of each machine.
    Exit code 0: it is so (of a cluster: it is written); 1: the evictor says that evictions are not paused; 3: the pause
    is written, and the evictor does not answer.
    """
    from datetime import UTC, timedelta

    from sublet.timespec import parse_duration_s

    wanted = DOCUMENT.read(output)
    end = datetime.now(UTC) + timedelta(seconds=parse_duration_s(for_how_long)) if for_how_long else None
    meant = _meant(system, pool, cluster=cluster)
    if meant is not None:
        _print(wanted, *_paused(kubeconfig, meant, reason, end, dry_run=dry_run))
        return
    from sublet.host.brake import pull, rehearse_pull

    _say(wanted, rehearse_pull(end) if dry_run else pull(reason, end))


def resume(
    cluster: Cluster = False,
    pool: Pool = "",
    dry_run: DryRun = False,
    output: Output = "table",
    kubeconfig: KubeconfigOption = None,
    system: SystemOption = "sublet-system",
) -> None:
    """Let this node, a pool or a cluster evict again. Each ends its own pause, and no other. Exit codes as those of
    `sublet pause`.
    """
    wanted = DOCUMENT.read(output)
    meant = _meant(system, pool, cluster=cluster)
    if meant is not None:
        _print(wanted, *_resumed(kubeconfig, meant, dry_run=dry_run))
        return
    from sublet.host.brake import rehearse_release, release

    _say(wanted, rehearse_release() if dry_run else release())


def _meant(system: str, pool: str, *, cluster: bool) -> "Meant | None":
    """The pool or cluster that is meant; None: this node."""
    from shared.contracts.cluster.pauses import WHOLE_CLUSTER, pause_key
    from shared.errors import Refused
    from sublet.cluster.pausing import Meant
    from sublet.invocation import as_plugin

    if not cluster and not pool:
        if not as_plugin():
            return None
        raise Refused("want --cluster or --pool NAME: kubectl has no node of its own to pause", reason="option")
    if cluster and pool:
        raise Refused("--cluster and --pool: want one of them", reason="option")
    pause_key(pool or WHOLE_CLUSTER)  # refused before anybody is asked
    return Meant(pool or WHOLE_CLUSTER, system)


def _paused(
    kubeconfig: Path | None, meant: "Meant", reason: str, end: datetime | None, *, dry_run: bool
) -> tuple[str, Mapping[str, Any]]:
    from sublet.cluster.options import ask_cluster
    from sublet.cluster.pausing import pause
    from sublet.terminal.dry_run import dry

    done = ask_cluster(kubeconfig, lambda kube: pause(kube, meant, reason, end), rehearsed=dry_run)
    by_hand = f"sublet resume {_options(meant)}"
    until = by_hand if end is None else f"by themselves at {end:%Y-%m-%d %H:%M:%S %Z}, or {by_hand}"
    if dry_run:
        return dry(f"evictions of {meant.words} would be paused; they go on {until}"), _document(done, dry_run=True)
    words = f"evictions of {meant.words} are paused as soon as its nodes hear of it; they go on {until}"
    return words, _document(done, dry_run=False)


def _resumed(kubeconfig: Path | None, meant: "Meant", *, dry_run: bool) -> tuple[str, Mapping[str, Any]]:
    from sublet.cluster.options import ask_cluster
    from sublet.cluster.pausing import resume
    from sublet.terminal.dry_run import dry

    was_paused, left = ask_cluster(kubeconfig, lambda kube: resume(kube, meant), rehearsed=dry_run)
    words = f"evictions of {meant.words} {'would go on' if dry_run else 'go on'}" if was_paused else (
        f"evictions of {meant.words} were not paused"
    )  # fmt: skip
    if left:
        words += f"; still paused: {'; '.join(one.words for one in left)}"
    document = {"pool": meant.pool, "was_paused": was_paused, "still_paused": [_document(one) for one in left]}
    return dry(words) if dry_run else words, {**document, "dry_run": dry_run}


def _document(done: Any, **more: bool) -> dict[str, Any]:
    return {**done.model_dump(mode="json"), **more}


def _options(meant: "Meant") -> str:
    from shared.contracts.cluster.pauses import WHOLE_CLUSTER

    return "--cluster" if meant.pool == WHOLE_CLUSTER else f"--pool {meant.pool}"


def _print(wanted: OutputFormat, words: str, document: Mapping[str, Any]) -> None:
    typer.echo(words if wanted.is_table else document_text(document, wanted))


def _say(wanted: OutputFormat, outcome: tuple[str, int]) -> None:
    words, code = outcome
    if wanted.is_table:
        typer.echo(words, err=code != 0)
    else:
        typer.echo(document_text({"scope": "node", "said": words, "exit_code": code}, wanted))
    raise typer.Exit(code)
