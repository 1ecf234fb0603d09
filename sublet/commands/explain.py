"""`sublet explain pod/NAME`: the chain of decisions behind one pod."""

from typing import Annotated, Literal

import typer


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(explain)


def explain(
    what: Annotated[str, typer.Argument(metavar="pod/NAME", help="The pod.")],
    namespace: Annotated[str, typer.Option("--namespace", "-n", help="Its namespace.")] = "default",
    output: Annotated[Literal["text", "json"], typer.Option("--output", "-o", help="text, or json")] = "text",
) -> None:
    """Show why a pod runs where it runs, or why it was evicted, with the numbers used at each step."""
    import json

    from shared.contracts.cloudevents import read_event
    from shared.contracts.eviction import EvictionEvent
    from shared.contracts.subjects import EVENTS_STREAM, event_filter
    from shared.errors import Refused, Unavailable
    from shared.ports import Bus, Received
    from sublet.ask import Target, ask_all, run
    from sublet.views.explain import chain
    from sublet.views.explain_text import lines
    from sublet.views.facts import read

    kind, slash, name = what.rpartition("/")
    if slash and kind not in ("pod", "pods", "po"):
        raise typer.BadParameter(f"{what!r}: only pods can be explained, as pod/NAME")

    def event_of(received: Received) -> EvictionEvent | None:
        try:
            return read_event(received.headers, received.data)
        except Refused:
            return None

    async def events_of(bus: Bus, node: str) -> list[EvictionEvent]:
        wanted = event_filter(namespace=namespace.replace(".", "_"), node=node)
        try:
            stored = await bus.replay(EVENTS_STREAM, wanted)
        except Unavailable as error:
            typer.echo(f"sublet explain: the times of evictions are not known: {error}", err=True)
            return []
        return [event for received in stored if (event := event_of(received)) is not None]

    async def show(bus: Bus, where: Target) -> int:
        facts = read(where.node, await ask_all(bus, where.node))
        document = chain(facts, await events_of(bus, where.node), namespace, name)
        if document is None:
            silent = f" ({', '.join(facts.silent)} did not answer)" if facts.silent else ""
            typer.echo(f"sublet explain: no pod {namespace}/{name} is known{silent}; see `sublet get pods`", err=True)
            return 1
        typer.echo(json.dumps(document, indent=2) if output == "json" else "\n".join(lines(document)))
        return 0

    run(show)
