"""`sublet run`: one command as a pod."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from sublet.terminal.dry_run import DryRun


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(context_settings={"allow_interspersed_args": False})(run)


def run(
    command: Annotated[
        list[str] | None, typer.Argument(metavar="COMMAND [ARG]...", help="What to run; not needed with --load.")
    ] = None,
    qos: Annotated[
        Literal["reclaimed", "shared", "dedicated", "reclaimed_cores", "shared_cores", "dedicated_cores"],
        typer.Option(
            help="reclaimed: batch work on what is idle. shared: an online service. "
            "dedicated: one with CPUs of its own, on as few NUMA nodes as hold it."
        ),
    ] = "reclaimed",
    cpu: Annotated[str, typer.Option(help="CPU asked for: 1, 500m.")] = "1",
    memory: Annotated[
        str, typer.Option(help="Memory asked for; also the most that a reclaimed pod gets (else 1/8 of the host's).")
    ] = "",
    cpu_limit: Annotated[str, typer.Option(help="The most CPU a shared pod gets; none if left out.")] = "",
    memory_limit: Annotated[str, typer.Option(help="The most memory; none if left out (reclaimed: --memory).")] = "",
    numa_binding: Annotated[bool, typer.Option("--numa-binding", help="Keep the pod on one NUMA node.")] = False,
    numa_exclusive: Annotated[
        bool, typer.Option("--numa-exclusive", help="dedicated: nobody else on its NUMA nodes.")
    ] = False,
    pool: Annotated[str, typer.Option(help="shared: the named pool to run in.")] = "",
    name: Annotated[str | None, typer.Option(help="Name of the pod; made from the command if left out.")] = None,
    namespace: Annotated[str, typer.Option("--namespace", "-n", help="Namespace of the pod.")] = "default",
    env: Annotated[list[str] | None, typer.Option("--env", "-e", metavar="K=V", help="Add to the environment.")] = None,
    user: Annotated[
        str, typer.Option(metavar="NAME|UID[:GID]", help="As whom it runs; by default who called sudo, else you.")
    ] = "",
    grace_period: Annotated[int, typer.Option(help="Seconds between TERM and KILL when it is evicted.")] = 30,
    detach: Annotated[bool, typer.Option("--detach", "-d", help="Leave it running; see sublet logs.")] = False,
    load: Annotated[
        str, typer.Option(help="Simulated machine: the cores it wants, 2.5 or sine:0.5..3:60s (docs/simulator.md).")
    ] = "",
    memory_load: Annotated[
        str, typer.Option(help="Simulated machine: the memory it holds, 512Mi or ramp:64Mi..2Gi:60s.")
    ] = "",
    dry_run: DryRun = False,
) -> None:
    """Run a command as a pod: a real process in its own cgroup.

    It runs as --user, without capabilities and without a way to get any (sudo and setuid programs do not work in it).
    A user who is not the caller gets HOME, USER and PATH of his own, the caller's TERM, LANG, LC_* and TZ, and what
    --env says; the rest of root's environment stays with root.

    In the foreground it has this terminal, gets this process's signals, and passes its exit code on; the pod is gone
    when it ends. Exit codes: the command's own; 128+n when signal n ended it (also when it was evicted: then a line
    on standard error says so); 125 when the pod could not be started (also when a taint keeps reclaimed pods away from
    this node), 126 when the command cannot be executed, 127 when it was not found.

    On the simulated machine nothing is executed: the pod uses the CPU and memory that --load and --memory-load say, and
    may be evicted, or killed for memory, as any other.
    """
    from shared.adapters.local.pod_user import asked_user
    from shared.adapters.local.runtime import new_uid, open_runtime
    from shared.core.pods.manifest import read_pod
    from shared.errors import SubletError
    from sublet.exit_codes import CANNOT_START
    from sublet.instance import writable_settings
    from sublet.load.simulated_pods import attend, load_annotations, require_playable
    from sublet.pods.admission import admit
    from sublet.pods.offer import warn_over_offer
    from sublet.pods.taints import require_untainted
    from sublet.terminal.dry_run import dry
    from sublet.terminal.stderr import print_error

    try:
        runs_as = asked_user(user, os.environ)
        runtime = open_runtime(writable_settings())
        loads = load_annotations(runtime, load, memory_load)
        command = command_of(command, loads)
        uid = new_uid()
        wanted = RunOptions(
            name=made_name(command[0], uid) if name is None else name, namespace=namespace, qos=qos,
            cpu=cpu, memory=memory, cpu_limit=cpu_limit, memory_limit=memory_limit,
            command=command, env=env or [], grace_s=grace_period,
            enhancements=enhancements(qos, bound=numa_binding, exclusive=numa_exclusive, pool=pool) | loads,
        )  # fmt: skip
        record = read_pod(pod_document(wanted), uid).record
        for line in warn_over_offer(runtime, [record]):
            print_error(line)
        require_playable(runtime, [record], print_error)
        require_untainted(runtime, [record])
        admit([record], print_error)
        if dry_run:
            typer.echo(dry(f"pod/{record.pod.name} would be started"))
            return
        if not detach and not runtime.simulated:
            runtime.become(record, user=runs_as)
        runtime.start(record, env=os.environ, user=runs_as)
    except SubletError as error:
        print_error(error)
        raise typer.Exit(CANNOT_START) from error
    if not detach:
        typer.echo(f"pod/{record.pod.name} runs on the simulated machine; Ctrl-C ends it")
        raise typer.Exit(attend(runtime, record, print_error))
    typer.echo(f"pod/{record.pod.name} started")


def command_of(given: list[str] | None, loads: Mapping[str, str]) -> list[str]:
    """What the pod runs; a pod with a load of its own needs no command.

    Raises:
        typer.BadParameter: nothing is given.
    """
    if not given and not loads:
        raise typer.BadParameter("no command: say what to run behind the options: sublet run -- COMMAND")
    return given or ["load"]


def made_name(command: str, uid: str) -> str:
    """A name for a pod that got none: the program's, made to fit, and a part of its UID."""
    letters = "".join(c if c.isascii() and c.isalnum() else "-" for c in Path(command).name.lower())
    return f"{letters.strip('-')[:40].strip('-') or 'pod'}-{uid[:5]}"


def enhancements(qos: str, *, bound: bool, exclusive: bool, pool: str) -> dict[str, str]:
    """The annotations that say where a pod wants to run (docs/facts/katalyst-cluster.md#qos-annotations).

    Raises:
        Refused: an option that this class does not have.
    """
    import json

    from shared.core.pods.qos import DOMAIN
    from shared.errors import Refused

    dedicated = qos.startswith("dedicated")
    if exclusive and not dedicated:
        raise Refused(f"--numa-exclusive is for dedicated pods, this one is {qos}; leave it out", reason="option")
    if pool and not qos.startswith("shared"):
        raise Refused(f"--pool is for shared pods, this one is {qos}; leave it out", reason="option")
    memory = {"numa_binding": "true"} if bound or dedicated else {}
    memory |= {"numa_exclusive": "true"} if exclusive else {}
    found = {"memory_enhancement": memory, "cpu_enhancement": {"cpuset_pool": pool} if pool else {}}
    return {f"{DOMAIN}{name}": json.dumps(values) for name, values in found.items() if values}


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """What is asked of the pod, in the words of the command line."""

    name: str
    namespace: str
    qos: str
    cpu: str
    memory: str
    cpu_limit: str
    memory_limit: str
    command: list[str]
    env: list[str]
    grace_s: int
    enhancements: Mapping[str, str]


def pod_document(wanted: RunOptions) -> dict[str, Any]:
    """The options as the Pod document that `sublet apply` would take, so that both are checked alike.

    Raises:
        Refused: an amount or a variable is malformed.
    """
    from shared.contracts.pod import RECLAIMED_CPU, RECLAIMED_MEMORY
    from shared.core.pods.qos import QOS_LEVEL

    for option, amount in (("--cpu", wanted.cpu), ("--memory", wanted.memory)):
        _refuse_nothing(option, amount)
    level = wanted.qos if wanted.qos.endswith("_cores") else f"{wanted.qos}_cores"
    reclaimed = level == "reclaimed_cores"
    names = (RECLAIMED_CPU, RECLAIMED_MEMORY) if reclaimed else ("cpu", "memory")

    def amounts(cpu_text: str, memory_text: str) -> dict[str, Any]:
        given = zip(names, (_millis(cpu_text) if reclaimed and cpu_text else cpu_text, memory_text), strict=True)
        return {resource: amount for resource, amount in given if amount != ""}

    container = {
        "name": "main",
        "command": wanted.command,
        "env": [_variable(pair) for pair in wanted.env],
        "workingDir": str(Path.cwd()),
        "resources": {
            "requests": amounts(wanted.cpu, wanted.memory),
            "limits": amounts(wanted.cpu_limit, wanted.memory_limit),
        },
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": wanted.name,
            "namespace": wanted.namespace,
            "annotations": {QOS_LEVEL: level, **wanted.enhancements},
        },
        "spec": {"terminationGracePeriodSeconds": wanted.grace_s, "containers": [container]},
    }


def _millis(cpu: str) -> int:
    """Reclaimed CPU is counted in milli-cores, whole (`44k`); people say how many cores."""
    from shared.contracts.kube.quantities import parse_millis
    from shared.errors import Refused

    try:
        return parse_millis(cpu)
    except ValueError as error:
        raise Refused(f"--cpu: {error}", reason="quantity") from error


def _refuse_nothing(option: str, amount: str) -> None:
    """A pod of nothing is a slip: who wants to say nothing leaves the option out."""
    from shared.contracts.kube.quantities import parse_millis
    from shared.errors import Refused

    try:
        nothing = amount != "" and parse_millis(amount) == 0
    except ValueError:  # said where the amount is read
        return
    if nothing:
        raise Refused(f"{option} {amount}: want more than 0, or leave it out", reason="bound")


def _variable(pair: str) -> dict[str, str]:
    from shared.errors import Refused

    key, equals, value = pair.partition("=")
    if not key or not equals:
        raise Refused(f"--env {pair!r}: want NAME=VALUE", reason="malformed")
    return {"name": key, "value": value}
