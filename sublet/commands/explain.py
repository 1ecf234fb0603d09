"""`sublet explain`: the chain of decisions behind a pod or a CPU, and what the cluster decided about any object."""

import re
from functools import partial
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from sublet.cluster.options import ClusterOption, KubeconfigOption, SystemOption, cluster_meant
from sublet.completion.names import complete_pod
from sublet.terminal.formats import OutputFormat, OutputFormats, document_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from shared.contracts.eviction import EvictionEvent
    from shared.ports import Bus, Received
    from sublet.ask import AskTarget
    from sublet.views.explain.chain import Document
    from sublet.views.facts import NodeFacts

EXPLANATION = OutputFormats(("table", "wide", "json", "yaml"))
"""`wide`: every step."""
PODS, CPUS = ("", "pod", "pods", "po"), ("cpu", "cpus")
SHORT = {"no": "node", "nodes": "node", "ns": "namespace", "deploy": "deployment", "hpa": "horizontalpodautoscaler"}
_KIND = r"[a-z][a-z0-9]{0,62}"
DECISIONS_S = 3.0
"""A login that may not read them gets no answer at all."""


class WantedObject(NamedTuple):
    """What was asked about; without a namespace it is looked for in all, and among objects that have none."""

    kind: str
    namespace: str | None
    name: str


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(explain)


def explain(
    what: Annotated[
        str,
        typer.Argument(
            autocompletion=complete_pod,
            metavar="pod/NAME|cpu/NUMBER|KIND/NAME",
            help="Pod, CPU or object.",
        ),
    ],
    namespace: Annotated[str, typer.Option("--namespace", "-n", help="The pod's namespace.")] = "default",
    output: Annotated[str, EXPLANATION.option] = "table",
    cluster: ClusterOption = False,
    kubeconfig: KubeconfigOption = None,
    system: SystemOption = "sublet-system",
) -> None:
    """Show why a pod runs where it runs, or why it was evicted. Or why a CPU is in its pool; with each step.

    Of a pod, a node or any other object it shows what the cluster's controllers decided too, as of a pod that waits:
    pod/NAMESPACE/NAME, node/NAME, tidenodepool/NAME. In short, or with every step: -o wide.
    Of a cluster it is asked in Sublet's pods, by `kubectl exec`.
    """
    from shared.core.text.document import dns_name
    from sublet.ask import run

    wanted = EXPLANATION.read(output)
    kind, _, name = what.rpartition("/")
    kind, _, within = kind.partition("/")
    if kind in CPUS:
        if not (name.isascii() and name.isdigit()) or within:
            raise typer.BadParameter(f"{what!r}: want the number of a CPU, as cpu/22")
        run(partial(_explain_cpu, cpu=int(name), output=wanted))
    if kind not in PODS and not re.fullmatch(_KIND, kind):
        raise typer.BadParameter(f"{what!r}: want pod/NAME, cpu/NUMBER or the kind and name of an object, as node/NAME")
    dns_name(within or namespace, "--namespace")
    dns_name(name, f"explain {what!r}: name")
    if cluster_meant(cluster, kubeconfig):
        from sublet.cluster.inside import Inside
        from sublet.cluster.inside import explain as explained

        where, pod = Inside(system, kubeconfig), name if kind in PODS else None
        wide = wanted.kind == "wide" if wanted.is_table else None
        lines, document = explained(where, what, within or namespace, pod, wide=wide)
        _print(document, lines, wanted)
        return
    if kind in PODS:
        run(partial(_explain_pod, namespace=within or namespace, name=name, output=wanted))
    run(partial(_explain_object, wanted=WantedObject(SHORT.get(kind, kind), within or None, name), output=wanted))


async def _explain_pod(bus: "Bus", where: "AskTarget", *, namespace: str, name: str, output: OutputFormat) -> int:
    from sublet.ask import ask_all
    from sublet.pods.ended import ended
    from sublet.terminal.stderr import print_error
    from sublet.views.explain.brief import brief_lines, wrapped
    from sublet.views.explain.chain import chain
    from sublet.views.explain.chain_text import lines
    from sublet.views.explain.decisions import decision_lines
    from sublet.views.facts import read

    facts = read(where.node, await ask_all(bus, where.node, where.services))
    document = chain(facts, await _events(bus, where.node, namespace), namespace, name, ended(namespace, name))
    decided = await _decisions(bus, WantedObject("pod", namespace, name))
    if document is None and not decided:
        silent = f" ({', '.join(facts.silent)} did not answer)" if facts.silent else ""
        print_error(f"no pod {namespace}/{name} is known{silent}; see `sublet get pods`")
        return 1
    text: list[str] = []
    if document is not None:
        text = list(brief_lines(document) if output.kind == "table" else wrapped(lines(document), "      "))
    if decided:
        document = {"namespace": namespace, "name": name, **(document or {}), "decisions": decided}
        text += [*([""] if text else []), *wrapped(decision_lines(decided, wide=output.kind == "wide"), "      ")]
    _print(document or {}, text, output)
    return 0


async def _explain_object(bus: "Bus", _where: "AskTarget", *, wanted: WantedObject, output: OutputFormat) -> int:
    from sublet.terminal.stderr import print_error
    from sublet.views.explain.brief import wrapped
    from sublet.views.explain.decisions import decision_lines

    decided = await _decisions(bus, wanted)
    if not decided:
        what = f"{wanted.kind} {wanted.name}"
        print_error(f"nothing was decided about {what} in the last day; on Kubernetes ask where central runs")
        return 1
    document: Document = {"kind": wanted.kind, "name": wanted.name, "decisions": decided}
    _print(document, wrapped(decision_lines(decided, wide=output.kind == "wide"), "      "), output)
    return 0


async def _decisions(bus: "Bus", wanted: WantedObject) -> "list[Document]":
    """What is stored of decisions about an object."""
    import asyncio

    from shared.contracts.bus.stored import RefusedMessage, read_decision
    from shared.contracts.bus.subjects import DECISIONS_STREAM, decision_filter
    from shared.errors import Unavailable
    from sublet.terminal.stderr import print_error
    from sublet.views.explain.decisions import decisions_part

    try:
        async with asyncio.timeout(DECISIONS_S):
            stored = await bus.replay(DECISIONS_STREAM, decision_filter(*wanted))
    except (Unavailable, TimeoutError) as error:
        print_error(f"what the cluster decided is not known here: {str(error) or 'no answer'}")
        return []
    read = [read_decision(received.subject, received.data) for received in stored]
    if refused := sum(isinstance(one, RefusedMessage) for one in read):
        print_error(f"{refused} messages about {wanted.kind} {wanted.name} are no decisions, and were left out")
    return decisions_part([one for one in read if not isinstance(one, RefusedMessage)])


async def _explain_cpu(bus: "Bus", where: "AskTarget", *, cpu: int, output: OutputFormat) -> int:
    from sublet.ask import NOT_THERE, ask_all
    from sublet.terminal.stderr import print_error
    from sublet.views.explain.brief import wrapped
    from sublet.views.explain.cpu import cpu_chain
    from sublet.views.explain.cpu_text import cpu_lines
    from sublet.views.facts import read

    facts = read(where.node, await ask_all(bus, where.node, ("metrics", "advisor", "qrm")))
    document = cpu_chain(facts, cpu)
    if document is None:
        print_error(_no_such_cpu(facts, cpu))
        return 1 if facts.cpus else NOT_THERE
    _print(document, wrapped(cpu_lines(document), "      "), output)
    return 0


def _no_such_cpu(facts: "NodeFacts", cpu: int) -> str:
    if facts.cpus:
        return f"no CPU {cpu} on {facts.node}; it has CPUs {facts.cpus}"
    silent = f"{', '.join(facts.silent)} did not answer" if facts.silent else "nothing is sampled or applied yet"
    return f"the CPUs of {facts.node} are not known: {silent}; see `sublet status`"


async def _events(bus: "Bus", node: str, namespace: str) -> "list[EvictionEvent]":
    """The stored eviction events of a namespace on this node; none where there is no stream."""
    from shared.contracts.bus.subjects import EVENTS_STREAM, event_filter
    from shared.errors import Unavailable
    from sublet.terminal.stderr import print_error

    try:
        stored = await bus.replay(EVENTS_STREAM, event_filter(namespace=namespace.replace(".", "_"), node=node))
    except Unavailable as error:
        print_error(f"the times of evictions are not known: {error}")
        return []
    return _readable(stored)


def _readable(stored: "Sequence[Received]") -> "list[EvictionEvent]":
    """The events among what is stored; how many messages are none is said."""
    from shared.contracts.bus.stored import RefusedMessage, read_event
    from sublet.terminal.stderr import print_error

    read = [read_event(received.subject, received.headers, received.data) for received in stored]
    events = [event for event in read if not isinstance(event, RefusedMessage)]
    if refused := len(read) - len(events):
        print_error(f"{refused} messages of this node are no events of it: see `sublet audit`")
    return events


def _print(document: "Document", lines: "Iterable[str]", output: OutputFormat) -> None:
    from sublet.output import printable

    typer.echo("\n".join(map(printable, lines)) if output.is_table else document_text(document, output))
