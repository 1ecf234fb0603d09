"""`sublet consumers`: teams that subscribe to eviction events."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sublet.terminal.dry_run import DryRun, dry
from sublet.terminal.formats import DOCUMENT, OBJECTS, ObjectList, document_text, printed
from sublet.terminal.watch import Watch, watched

if TYPE_CHECKING:
    from shared.adapters.nats.consumers import Durables
    from shared.adapters.nats.embedded.reload import LocalServer
    from shared.ports import Bus
    from sublet.ask import AskTarget

Name = Annotated[str, typer.Argument(help="The team; also the name of its durable consumer and of its login.")]
Output = Annotated[str, DOCUMENT.option]
ListOutput = Annotated[str, OBJECTS.option]
PasswordFile = Annotated[
    Path | None, typer.Option(help="Write the password here, for the owner alone, instead of printing it.")
]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(help="Teams that subscribe: durable consumers, logins, dead letters.", no_args_is_help=True)
    group.command()(add)
    group.command(name="list")(show)
    group.command()(rotate)
    group.command()(remove)
    group.command()(dead_letters)
    app.add_typer(group, name="consumers")


def add(
    name: Name,
    namespace: Annotated[list[str] | None, typer.Option("--namespace", "-n", help="Pods of this one only.")] = None,
    phase: Annotated[list[str] | None, typer.Option(help="Only this phase: created, succeeded, …")] = None,
    node: Annotated[list[str] | None, typer.Option(help="Only this node.")] = None,
    start: Annotated[str, typer.Option("--from", metavar="all|new|TIME", help="Where a new one begins.")] = "all",
    max_deliver: Annotated[int | None, typer.Option(help="Give an event up after so many; none: never.")] = None,
    ack_wait: Annotated[float, typer.Option(metavar="SECONDS", help="Without an answer for this long: again.")] = 30.0,
    rotate: Annotated[bool, typer.Option("--rotate", help="A new password.")] = False,
    login: Annotated[bool, typer.Option(help="Give it a login; --no-login where an operator has.")] = True,
    password_file: PasswordFile = None,
    dry_run: DryRun = False,
    output: Output = "table",
) -> None:
    """Make a durable consumer and a read-only login for a team. Options that filter may be repeated.

    Declarative: the same words again change nothing; other words change what the server lets be changed, else it is
    said what is in the way. A durable's place in the stream and its password stay.
    """
    from shared.core.bus.durable import EventFilter, changes, wanted_durable
    from shared.errors import Refused
    from sublet.ask import run
    from sublet.consumers import messages
    from sublet.consumers.login import Login, give, require_writable

    if rotate and not login:
        raise Refused("--rotate and --no-login: a new password is a login; say one of them", reason="option")
    shape = DOCUMENT.read(output)
    wanted = wanted_durable(
        name,
        EventFilter(namespace or (), phase or (), node or ()),
        start=start,
        ack_wait_s=ack_wait,
        max_deliver=max_deliver,
    )

    async def work(bus: "Bus", where: "AskTarget") -> int:
        durables = _durables(bus)
        if login and password_file is not None:
            require_writable(password_file)
        state = await durables.named(name)
        found = changes(state.durable, wanted) if state else ()
        what = "created" if state is None else "updated" if found else "unchanged"
        if dry_run:
            document = messages.added(wanted, dry(what), found, Login(name), where.nats_url)
            typer.echo(messages.added_lines(document) if shape.is_table else document_text(document, shape))
            return 0
        if what != "unchanged":
            await durables.put(wanted)
        server = _our_server(where)
        anew = rotate or (server is None and state is None)
        given = give(name, server, password_file, anew=anew) if login else Login(name)
        document = messages.added(wanted, what, found, given, where.nats_url)
        typer.echo(messages.added_lines(document) if shape.is_table else document_text(document, shape))
        return 0

    run(work)


def show(watch: Watch = False, output: ListOutput = "table") -> None:
    """List the durable consumers. How far each is behind, whether it is stuck, what was given up for it."""
    from datetime import UTC, datetime

    from sublet.ask import run
    from sublet.consumers import messages
    from sublet.consumers.dead import counts
    from sublet.consumers.login import known_logins

    wanted = OBJECTS.read(output)

    async def look(bus: "Bus", where: "AskTarget") -> int:
        dead, logins = await counts(bus), known_logins(_our_server(where))
        found = [
            messages.listed(state, dead.get(name, 0), login=None if logins is None else name in logins)
            for state in await _durables(bus).all()
            for name in [state.durable.name]
        ]
        listed = ObjectList(
            tuple(f"consumer/{one['name']}" for one in found),
            lambda wide: messages.listed_table(found, datetime.now(UTC), wide=wide),
            lambda: found,
        )
        typer.echo(printed(listed, wanted))
        return 0

    run(lambda bus, where: watched(lambda: look(bus, where), watch=watch))


def rotate(name: Name, password_file: PasswordFile = None, dry_run: DryRun = False, output: Output = "table") -> None:
    """Give a team a new password. The old one ends at once, and connections that came with it."""
    from shared.core.bus.durable import wanted_durable
    from sublet.ask import run
    from sublet.consumers import messages
    from sublet.consumers.login import give

    wanted_durable(name)  # a name that none can have is said before anybody is asked
    wanted = DOCUMENT.read(output)

    async def work(bus: "Bus", where: "AskTarget") -> int:
        state = await _durables(bus).named(name)
        if state is None:
            raise _unknown(name)
        if dry_run:
            told = {"name": name, "password": dry("would be a new one; the old one would end at once")}
            typer.echo(f"{name}: password {told['password']}" if wanted.is_table else document_text(told, wanted))
            return 0
        login = give(name, _our_server(where), password_file, anew=True)
        document = messages.added(state.durable, "unchanged", (), login, where.nats_url)
        typer.echo(messages.added_lines(document) if wanted.is_table else document_text(document, wanted))
        return 0

    run(work)


def remove(
    name: Name,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    dry_run: DryRun = False,
    output: Output = "table",
) -> None:
    """Remove a team's login and durable consumer. Its place in the stream goes; the events stay."""
    from shared.core.bus.durable import wanted_durable
    from sublet.ask import run

    wanted_durable(name)
    wanted = DOCUMENT.read(output)

    async def work(bus: "Bus", where: "AskTarget") -> int:
        durables, server = _durables(bus), _our_server(where)
        state = await durables.named(name)
        has_login = server is not None and name in server.accounts.logins()
        if state is None and not has_login:
            raise _unknown(name)
        if dry_run:
            would: dict[str, Any] = {"name": name, "durable": state is not None, "login": has_login, "dry_run": True}
            said = dry(
                f"{name}: {_removed(would)} would be removed; {state.pending if state else 0} events wait for it"
            )
            typer.echo(said if wanted.is_table else document_text(would, wanted))
            return 0
        _ask(name, state.pending if state else 0, yes=yes)
        if server is not None and has_login:
            server.set_login(name, None)
        removed: dict[str, Any] = {"name": name, "durable": await durables.remove(name), "login": has_login}
        typer.echo(f"{name}: {_removed(removed)} removed" if wanted.is_table else document_text(removed, wanted))
        return 0

    run(work)


def dead_letters(
    name: Annotated[str | None, typer.Argument(help="Only this team's.")] = None, output: ListOutput = "table"
) -> None:
    """List the events that were given up. After max-deliver vain deliveries; they stay in the stream."""
    from shared.core.bus.durable import wanted_durable
    from sublet.ask import run
    from sublet.consumers import messages
    from sublet.consumers.dead import dead_letters as read

    shape = OBJECTS.read(output)
    whose = wanted_durable(name).name if name else "*"

    async def work(bus: "Bus", _where: "AskTarget") -> int:
        found = [messages.buried(letter) for letter in await read(bus, _durables(bus), whose)]
        letters = ObjectList(
            tuple(f"event/{one['event_id'] or one['sequence']}" for one in found),
            lambda _wide: messages.buried_table(found),
            lambda: found,
        )
        typer.echo(printed(letters, shape))
        return 0

    run(work)


def _durables(bus: "Bus") -> "Durables":
    from shared.adapters.nats.bus import NatsBus
    from shared.errors import Unavailable

    if not isinstance(bus, NatsBus):
        raise Unavailable("durable consumers are a thing of NATS servers: this bus is none", reason="no_server")
    return bus.durables


def _our_server(where: "AskTarget") -> "LocalServer | None":
    from sublet.consumers.login import our_server
    from sublet.instance import this_instance

    meant = this_instance()
    return None if meant.foreign else our_server(meant.state_dir, where.nats_url)


def _unknown(name: str) -> Exception:
    from shared.errors import Refused

    return Refused(f"no consumer {name!r} here: see `sublet consumers list`, or make it: sublet consumers add {name}")


def _ask(name: str, pending: int, *, yes: bool) -> None:
    import sys

    from shared.errors import Refused

    if yes:
        return
    if not sys.stdin.isatty():
        raise Refused(f"remove {name}, which forgets its place in the stream? Say so with --yes", reason="unconfirmed")
    if not typer.confirm(f"Remove {name}? {pending} events wait for it, and its place in the stream is forgotten."):
        raise Refused(f"{name} stays", reason="unconfirmed")


def _removed(removed: dict[str, Any]) -> str:
    return " and ".join(part for part in ("durable", "login") if removed[part])
