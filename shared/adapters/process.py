"""`main` turns a command line into running services: settings, logs, the bus, signals, the exit code.

Exit codes: 0 stopped as asked; 1 something died; 2 a setting cannot be used; 3 something needed is not there (NATS, the
HTTP port); 4 this host cannot run it.
"""

import asyncio
import contextlib
import gc
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import structlog

from shared import telemetry
from shared.adapters.clock import SystemClock
from shared.adapters.host.resident import be_killed_last, lock_memory
from shared.adapters.host.scheduling import LoopScheduling
from shared.adapters.nats.bus import connect, connect_without_echo
from shared.app import Plan, Runner
from shared.build import BUILD
from shared.contracts.services import NODE_SERVICES
from shared.errors import BadConfig, SubletError, Unavailable, Unfit
from shared.ports import Bus
from shared.settings import CommonSettings, common_settings, raw_settings
from shared.standalone_bus import StandaloneBus

log = structlog.get_logger()

# Nothing for others: state folders hold labels, annotations and addresses of tenants' pods.
UMASK = 0o027
DIED, BAD_SETTING, NOT_THERE, UNFIT = 1, 2, 3, 4
CODES: dict[type[SubletError], int] = {BadConfig: BAD_SETTING, Unavailable: NOT_THERE, Unfit: UNFIT}

COLLECT_AFTER = 20_000
"""The garbage collector runs after this many new objects. A round over 250 pods keeps about ten thousand new ones and
no reference cycle: at Python's default of 700 the collector took an eighth of the round."""

Connect = Callable[[], Awaitable[Bus]]
Run = Callable[[CommonSettings, Mapping[str, Any]], Coroutine[Any, Any, int]]


def main(plans: Sequence[Plan]) -> NoReturn:
    """Run services in this process until a signal or a death, and exit. The umask keeps what they write from others."""
    os.umask(UMASK)
    sys.exit(start(plans, os.environ))


def start(plans: Sequence[Plan], env: Mapping[str, str], file: Path | None = None) -> int:
    """Read the settings, run the services; returns the exit code."""
    return start_as(process_name(plans), lambda common, raw: run_process(plans, common, raw), env, file)


def start_as(name: str, run: Run, env: Mapping[str, str], file: Path | None = None) -> int:
    """Read the settings, and run what they are for under this name; returns the exit code."""
    try:
        raw = raw_settings(env, file)
        common = common_settings(raw)
        telemetry.setup_logging(name, common.node, as_json=common.log_json, level=common.log_level)
        telemetry.setup_tracing(name, common.node, common.otlp_endpoint)
        return asyncio.run(run(common, raw))
    except SubletError as error:
        print(f"sublet {name}: {error}", file=sys.stderr)
        return exit_code(error)


def process_name(plans: Sequence[Plan]) -> str:
    """One service is named after itself, several together are the node."""
    return plans[0].name if len(plans) == 1 else "node"


def exit_code(error: SubletError) -> int:
    """The exit code that an error at the start leads to."""
    return next((code for kind, code in CODES.items() if isinstance(error, kind)), DIED)


async def run_process(plans: Sequence[Plan], common: CommonSettings, raw: Mapping[str, Any]) -> int:
    """Connect, run, and answer over HTTP if asked for, until SIGTERM, SIGINT or a death.

    Raises:
        BadConfig: a service cannot use its settings.
        Unavailable: no NATS server within `connect_timeout_s`, or the HTTP port is taken.
    """
    clock, stop, alone = SystemClock(), asyncio.Event(), len(plans) == 1

    async def to_nats() -> Bus:
        return await (connect if alone else connect_without_echo)(
            common.nats_url,
            name=f"{process_name(plans)}/{common.node}",
            connect_timeout_s=common.connect_timeout_s,
            clock=clock,
        )

    with signals_set(stop):
        bus = await _unless_stopped(to_nats, stop)
        # A stop that came while NATS was awaited is a clean end, not a failure: nothing had begun.
        if bus is None:
            return 0
        log.info("process.started", version=BUILD.version, revision=BUILD.revision, python=BUILD.python)
        # Alone in its process a service has no neighbours to hand messages to; it goes to its safe state without NATS.
        runner = Runner(plans, bus if alone else StandaloneBus(bus), clock, common, raw)
        gc.freeze()  # what is imported by now stays for good: the collector need not look at it again and again
        gc.set_threshold(COLLECT_AFTER)
        with _ahead_of_others(plans, common):
            async with _http(common, runner):
                return await runner.run(stop)


@contextlib.contextmanager
def _ahead_of_others(plans: Sequence[Plan], common: CommonSettings) -> Iterator[None]:
    """Request the kernel's precedence for a node's services, for as long as the block lasts.

    A simulated machine and central have no deadline to meet.
    """
    if common.substrate == "sim" or not any(plan.name in NODE_SERVICES for plan in plans):
        yield
        return
    wanted = common.lock_memory
    log.info("memory.kept", locked=wanted and lock_memory(), killed_last=wanted and be_killed_last())
    with LoopScheduling(common.scheduling).taken():
        yield


async def _unless_stopped(connect_bus: Connect, stop: asyncio.Event) -> Bus | None:
    """The bus, or None where a signal came before it was there."""
    connecting = asyncio.ensure_future(connect_bus())
    stopping = asyncio.create_task(stop.wait())
    try:
        await asyncio.wait({connecting, stopping}, return_when=asyncio.FIRST_COMPLETED)
        return await connecting if connecting.done() else None
    finally:
        for task in (connecting, stopping):
            # Both, whichever ended first: an uncancelled connection attempt would continue for `connect_timeout_s`.
            task.cancel()
        await asyncio.gather(connecting, stopping, return_exceptions=True)


@contextlib.asynccontextmanager
async def _http(common: CommonSettings, runner: Runner) -> AsyncIterator[None]:
    if common.http_port == 0:
        yield
        return
    from shared.adapters.health_http import HealthServer  # a process without a port does not need it

    server = HealthServer(healths=runner.healths, connected=lambda: runner.bus.connected)
    try:
        await server.start(common.http_host, common.http_port)
    except Unavailable:
        # The runner, which drains otherwise, has not begun.
        await runner.bus.drain()
        raise
    try:
        yield
    finally:
        await server.close()


@contextlib.contextmanager
def signals_set(stop: asyncio.Event) -> Iterator[None]:
    """Set `stop` when SIGTERM or SIGINT comes."""
    loop, signals = asyncio.get_running_loop(), (signal.SIGTERM, signal.SIGINT)
    for number in signals:
        loop.add_signal_handler(number, stop.set)
    try:
        yield
    finally:
        for number in signals:
            loop.remove_signal_handler(number)
