"""`sublet up`, `sublet down`, `sublet node`: run Sublet on this machine."""

import contextlib
import os
import signal
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sublet.exit_codes import FAILED, code_of
from sublet.terminal.dry_run import DryRun
from sublet.terminal.stderr import print_error

if TYPE_CHECKING:
    from shared.settings import CommonSettings
    from sublet.host.session import Session
    from sublet.sim.live.chosen import ChosenScenario


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(up)
    app.command()(down)
    app.command()(node)


def up(
    substrate: Annotated[
        str,
        typer.Option(
            help="host: real cgroups, needs root; the default for root. sim: a simulated 48-CPU machine; the default "
            "for everybody else."
        ),
    ] = "",
    nats_url: Annotated[str, typer.Option(help="Use this NATS server instead of starting one.")] = "",
    nats_url_file: Annotated[
        Path | None, typer.Option(help="The same from a file (mode 0600): a password in it shows in no process list.")
    ] = None,
    nats_port: Annotated[int, typer.Option(help="Port of the NATS server started here; 0: any free port.")] = 4222,
    one_process: Annotated[bool, typer.Option(help="Run the five node services in one process.")] = False,
    scenario: Annotated[
        str,
        typer.Option(
            help="Simulated machine: what happens on it, a file or the name of a built-in scenario (sublet sim --list: "
            "idle, memory, overcommit, quickstart, tide); tide if left out."
        ),
    ] = "",
    speed: Annotated[
        float,
        typer.Option(help="Simulated machine: how many seconds of scenario and loads' curves pass in one."),
    ] = 1.0,
    http_port: Annotated[int, typer.Option(help="First port of /livez, /readyz, /metrics; 0: none.")] = 0,
    page: Annotated[
        bool, typer.Option("--page", help="Serve the live page on loopback; its address is printed.")
    ] = False,
    forget: Annotated[bool, typer.Option(help="At the end remove the history of evictions too.")] = False,
    dry_run: DryRun = False,
) -> None:
    """Start NATS and the six services on this machine. Ctrl-C stops them and leaves the machine as it was."""
    import asyncio

    from sublet.host.listening import require_ports, require_server_url
    from sublet.host.session import Session

    require_ports(nats_port, http_port)
    over: dict[str, Any] = {"substrate": substrate} if substrate else {}
    url = _url(nats_url, nats_url_file)
    if url:
        require_server_url(url)
    if dry_run:
        from sublet.host.rehearsal import rehearse_up

        common, chosen, _ = _settings_at_start(over, (scenario, speed))
        typer.echo(rehearse_up(common, url, nats_port, chosen.about))
        return
    begin = partial(
        Session,
        nats_url=url or None,
        nats_port=nats_port,
        one_process=one_process,
        http_port=http_port,
        page=page,
        forget=forget,
    )
    raise SystemExit(asyncio.run(_up(over, begin, (scenario, speed))))


def _url(text: str, file: Path | None) -> str:
    from shared.errors import SubletError
    from sublet.host.url_file import read_url

    if file is None:
        if "@" in text:
            print_error("a password stands in the process list now; put it into --nats-url-file")
        return text
    try:
        return read_url(file, text)
    except SubletError as error:
        print_error(error)
        raise SystemExit(code_of(error)) from error


def _settings_at_start(
    over: dict[str, Any], scenario: tuple[str, float]
) -> "tuple[CommonSettings, ChosenScenario, bool]":
    """The settings with `over` before them, what is played, and whether the machine is simulated by default.

    Raises:
        SubletError: settings or scenario cannot be used.
    """
    from shared.settings import common_settings, merge, raw_settings
    from sublet.sim.live.chosen import choose_scenario
    from sublet.validation.findings import validate_settings
    from sublet.validation.given import given_settings

    # Before anything is started: a service that refuses its settings would only say so in its log, again and again.
    validate_settings(given_settings(os.environ)).require_valid()
    raw = raw_settings()
    by_itself = "substrate" not in over and "substrate" not in raw and os.geteuid() != 0
    common = common_settings(merge(raw, {"substrate": "sim"} if by_itself else over))
    return common, choose_scenario(common.substrate, *scenario, os.environ), by_itself


async def _up(over: dict[str, Any], begin: "Callable[..., Session]", scenario: tuple[str, float] = ("", 1.0)) -> int:
    """Run a session until it is stopped; `over` goes before the settings, `scenario` is a name and a speed."""
    import asyncio

    from shared.adapters.process import UMASK
    from shared.errors import SubletError
    from shared.telemetry import setup_logging
    from sublet.host.systemd import systemd_of

    os.umask(UMASK)
    systemd = systemd_of(os.environ)
    stop, _alive = asyncio.Event(), asyncio.ensure_future(systemd.keep_alive())
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    try:
        common, chosen, by_itself = _settings_at_start(over, scenario)
        setup_logging("up", common.node, as_json=False, level="warning")
        if common.substrate == "sim" and str(common.host_root) == "/":
            common = common.model_copy(update={"host_root": common.state_dir / "simhost"})
        session = begin(common, scenario=chosen.path, speed=chosen.speed, extra_env=chosen.environment)
        starting = asyncio.ensure_future(session.start())
        await asyncio.wait({starting, asyncio.ensure_future(stop.wait())}, return_when=asyncio.FIRST_COMPLETED)
        if not starting.done():
            starting.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await starting
            typer.echo(_farewell(session))
            return 0
        starting.result()
    except SubletError as error:
        print_error(error)
        return code_of(error)
    if session.unwell:
        wrong = "; ".join(f"{name}: {why}" for name, why in session.unwell.items())
        print_error(f"not every service is well yet: {wrong}; see `sublet status` and {common.state_dir / 'logs'}")
    for line in _banner(chosen.about, by_itself=by_itself, well=not session.unwell):
        typer.echo(line)
    if session.page_url:
        typer.echo(f"Live page: {session.page_url}")
    systemd.ready("up" if not session.unwell else "not every service is well: sublet status")
    fault = asyncio.ensure_future(session.fault())
    await asyncio.wait({fault, asyncio.ensure_future(stop.wait())}, return_when=asyncio.FIRST_COMPLETED)
    if not stop.is_set():
        await session.leave()
        print_error(
            f"{fault.result()}; the services are ended. Pods go on without them: start it again, or end them with: "
            "sublet down"
        )
        return FAILED
    systemd.stopping()
    left = await session.stop()
    if left:
        print_error(f"could not remove {', '.join(left)}; look for processes there, then: sublet down")
        return FAILED
    typer.echo(_farewell(session))
    return 0


def _farewell(session: "Session") -> str:
    """What is said at the end of a run, also of one that was stopped while it started."""
    return "stopped; nothing is left" + ("" if session.forget else f" but the history in {session.state_dir}")


def _banner(about: str, *, by_itself: bool, well: bool) -> Iterator[str]:
    """What runs and what to type next; `about` is what a simulated machine plays, empty on a real one."""
    headline = "Sublet is up" if well else "Sublet runs, but not all of it is well"
    if by_itself:
        yield "You are not root, so this machine is a simulated one; on this host's own cgroups: sudo sublet up"
    if about:
        yield f"{headline}, on a simulated machine; {about}."
        yield "In another terminal: sublet events --follow · sublet status · sublet run -d --load 2.5 --name work"
    else:
        yield f"{headline}. In another terminal: sublet status · sublet run --qos reclaimed --name work -- COMMAND"
    yield "Ctrl-C stops it and leaves this machine as it was."


def down(
    forget: Annotated[bool, typer.Option(help="Remove the history of evictions too.")] = False,
    dry_run: DryRun = False,
) -> None:
    """Clean up after a `sublet up` that was killed. Its pods end, its cgroups and its state go."""
    from shared.errors import SubletError
    from shared.settings import common_settings, raw_settings
    from sublet.host.preflight import require_fit, take_host
    from sublet.host.rehearsal import rehearse_down
    from sublet.host.session import POD_GRACE_S
    from sublet.host.teardown import remove_groups
    from sublet.state.claim import claim_state

    try:
        common = common_settings(raw_settings())
        require_fit(common)
        if dry_run:
            typer.echo(rehearse_down(common, forget=forget))
            return
        folder = claim_state(common.state_dir, typer.echo)
        try:
            held = take_host(common)  # a Sublet that is up with another state folder has these groups
            left = remove_groups(common.host_root, grace_s=POD_GRACE_S) if held is not None else []
            folder.empty(forget=forget)
        finally:
            folder.release()
    except SubletError as error:
        print_error(error)
        raise SystemExit(code_of(error)) from error
    if left:
        print_error(f"could not remove {', '.join(left)}; look for processes there, then do it again")
        raise SystemExit(FAILED)
    typer.echo("clean")


def node() -> None:
    """Run the five node services in one process, in the foreground. Settings: SUBLET_* and SUBLET_CONFIG."""
    os.execv(sys.executable, [sys.executable, "-P", "-m", "sublet.node"])  # noqa: S606
