"""`sublet explain pod/NAME` and `cpu/NUMBER`: the chain of decisions behind one pod or one CPU."""

from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

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


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(explain)


def explain(
    what: Annotated[
        str, typer.Argument(autocompletion=complete_pod, metavar="pod/NAME|cpu/NUMBER", help="The pod, or the CPU.")
    ],
    namespace: Annotated[str, typer.Option("--namespace", "-n", help="The pod's namespace.")] = "default",
    output: Annotated[str, EXPLANATION.option] = "table",
) -> None:
    """Show why a pod runs where it runs or was evicted, or why a CPU is in its pool, with the numbers of each step.

    In short, or with every step: -o wide.
    """
    from shared.core.text.document import dns_name
    from sublet.ask import run

    wanted = EXPLANATION.read(output)
    kind, _, name = what.rpartition("/")
    if kind not in PODS + CPUS:
        raise typer.BadParameter(f"{what!r}: only pods and CPUs can be explained, as pod/NAME or cpu/NUMBER")
    if kind in PODS:
        dns_name(namespace, "--namespace")
        dns_name(name, f"explain {what!r}: name")
        run(partial(_explain_pod, namespace=namespace, name=name, output=wanted))
    if not (name.isascii() and name.isdigit()):
        raise typer.BadParameter(f"{what!r}: want the number of a CPU, as cpu/22")
    run(partial(_explain_cpu, cpu=int(name), output=wanted))


async def _explain_pod(bus: "Bus", where: "AskTarget", *, namespace: str, name: str, output: OutputFormat) -> int:
    from sublet.ask import ask_all
    from sublet.pods.ended import ended
    from sublet.terminal.stderr import print_error
    from sublet.views.explain.brief import brief_lines, wrapped
    from sublet.views.explain.chain import chain
    from sublet.views.explain.chain_text import lines
    from sublet.views.facts import read

    facts = read(where.node, await ask_all(bus, where.node, where.services))
    document = chain(facts, await _events(bus, where.node, namespace), namespace, name, ended(namespace, name))
    if document is None:
        silent = f" ({', '.join(facts.silent)} did not answer)" if facts.silent else ""
        print_error(f"no pod {namespace}/{name} is known{silent}; see `sublet get pods`")
        return 1
    text = brief_lines(document) if output.kind == "table" else wrapped(lines(document), "      ")
    _print(document, text, output)
    return 0


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
