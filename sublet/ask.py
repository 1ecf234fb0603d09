"""How commands reach the bus: find the server, query the services, and fail with one clear line if there is no
answer."""

import asyncio
import contextlib
import json
import re
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from shared.contracts.bus.subjects import ask_subject
from shared.contracts.services import CENTRAL, SERVICES
from shared.errors import SubletError, Unavailable
from shared.ports import Bus
from shared.settings import SYSTEM_STATE_DIR, common_settings, raw_settings
from sublet.bus_login import read_login
from sublet.exit_codes import NOT_THERE as NOT_THERE  # noqa: PLC0414 - what commands that ask end with
from sublet.exit_codes import SIGNALLED, code_of
from sublet.instance import MeantInstance, this_instance
from sublet.invocation import as_root
from sublet.terminal.stderr import print_error

CONNECT_TIMEOUT_S = 2.0
CANCEL_AGAIN_S = 2.0
"""A client that has swallowed a cancellation gets another one after this long."""
ANSWER_TIMEOUT_S = 2.0
MAX_ANSWER_BYTES = 1 << 20
"""What a server takes as one message; a full node of 250 pods needs 200 kB."""
MAX_DEPTH = 32
_STEERING = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")

Answers = Mapping[str, Mapping[str, Any] | None]
"""Each service's own account of itself by its name; None where it does not answer."""


class NobodyThere(Unavailable):
    """There is no server to ask."""


@dataclass(frozen=True, slots=True)
class AskTarget:
    """Which node to ask about, and through which server."""

    node: str
    nats_url: str
    services: tuple[str, ...] = SERVICES
    """The services that answer for the node; on Kubernetes without central, which nodes have no way to ask."""
    starting: bool = False
    """Whether its server is worth waiting for: a `sublet up` runs, and starts one that has ended again."""


def target() -> AskTarget:
    """From the settings; what they leave open is taken from the login of a `sublet up` on this machine.

    Raises:
        Unavailable: root's Sublet is meant, and this user may not read its login.
    """
    raw = raw_settings()
    common = common_settings(raw)
    meant, addressed = this_instance(), "nats_url" in raw
    login = _login(meant, chosen="state_dir" in raw)
    running = meant.running
    if running is not None and not login and not addressed and meant.foreign:
        raise Unavailable(
            f"the Sublet of this machine is root's ({running.words()}), and you may not read its bus: {as_root()}; "
            "or have root name your group (reader_group)",
            reason="login",
        )
    return AskTarget(
        services=tuple(name for name in SERVICES if common.substrate != "kubernetes" or name != CENTRAL),
        node=common.node if "node" in raw else login.get("node", common.node),
        nats_url=common.nats_url if addressed else login.get("nats_url", common.nats_url),
        starting=running is not None and not addressed,
    )


def _login(meant: MeantInstance, *, chosen: bool) -> Mapping[str, str]:
    """Node and address of a login that this user may read: of the instance, else of this machine's root."""
    found = read_login(meant.state_dir)
    return found if found or chosen or meant.running is not None else read_login(SYSTEM_STATE_DIR)


@contextlib.asynccontextmanager
async def connected(where: AskTarget) -> AsyncIterator[Bus]:
    """A bus client for as long as the command runs.

    Raises:
        NobodyThere: no server at that address.
        Unavailable: the server does not take this login.
    """
    from shared import telemetry
    from shared.adapters.clock import SystemClock
    from shared.adapters.nats.bus import connect, connect_at_once
    from shared.core.bus.nats_url import without_secrets

    telemetry.setup_logging(
        "sublet", where.node, as_json=False, level="critical"
    )  # a command says what is wrong itself
    name, clock = f"cli/{where.node}", SystemClock()
    try:
        if where.starting:
            bus = await connect(where.nats_url, name=name, connect_timeout_s=CONNECT_TIMEOUT_S, clock=clock)
        else:
            bus = await connect_at_once(where.nats_url, name=name, timeout_s=CONNECT_TIMEOUT_S, clock=clock)
    except Unavailable as error:
        if error.reason == "login":
            raise
        step = (
            "this address was given (nats_url, SUBLET_NATS_URL): is it right, and does a server run there?"
            if "nats_url" in raw_settings()
            else "start Sublet with `sudo sublet up`, or set SUBLET_NATS_URL"
        )
        raise NobodyThere(f"no NATS server at {without_secrets(where.nats_url)}: {step}") from error
    try:
        yield bus
    finally:
        await bus.drain()


async def ask(bus: Bus, node: str, service: str) -> Mapping[str, Any] | None:
    """One service's state; None when it does not answer in time, or not with a mapping that can be read.

    An answer is text from outside, whoever gave it: bounded in size and depth, without characters that steer a
    terminal, and never more than something to show. No path, address or command in it is followed.
    """
    try:
        return read_answer(await bus.request(ask_subject(node, service), timeout_s=ANSWER_TIMEOUT_S))
    except Unavailable:
        return None


def read_answer(payload: bytes) -> Mapping[str, Any] | None:
    """An answer as a mapping; None where it is larger, deeper or something else."""
    if len(payload) > MAX_ANSWER_BYTES:
        return None
    try:
        answer = json.loads(payload)
        return _plain(answer, MAX_DEPTH) if isinstance(answer, dict) else None
    except (ValueError, RecursionError):
        return None


def _plain(value: Any, levels: int) -> Any:
    """The same value, with `\\x1b` for what a terminal would obey.

    Raises:
        ValueError: it is nested deeper than that.
    """
    if isinstance(value, str):
        return _STEERING.sub(lambda found: repr(found[0])[1:-1], value)
    if not isinstance(value, dict | list):
        return value
    if levels == 0:
        raise ValueError(f"nested deeper than {MAX_DEPTH}")
    if isinstance(value, list):
        return [_plain(item, levels - 1) for item in value]
    return {_plain(key, levels): _plain(item, levels - 1) for key, item in value.items()}


async def ask_all(bus: Bus, node: str, services: Sequence[str]) -> Answers:
    """Several services at once."""
    answers = await asyncio.gather(*(ask(bus, node, service) for service in services))
    return dict(zip(services, answers, strict=True))


def run(work: Callable[[Bus, AskTarget], Awaitable[int]]) -> NoReturn:
    """Run a command on the bus and end the process: 0, the command's own code, or one line of why not."""

    ended_by: list[signal.Signals] = []

    async def connected_work() -> int:
        # Not as Ctrl-C, which a shell's background command ignores; and the first process of a container would not
        # even notice a SIGTERM without a handler.
        if (task := asyncio.current_task()) is not None:
            loop = asyncio.get_running_loop()
            loop.add_signal_handler(signal.SIGTERM, _end, loop, task, ended_by)
        where = target()
        async with connected(where) as bus:
            return await work(bus, where)

    try:
        code = asyncio.run(connected_work())
    except SubletError as error:
        print_error(error)
        code = code_of(error)
    except (KeyboardInterrupt, asyncio.CancelledError):
        code = SIGNALLED + (ended_by[0] if ended_by else signal.SIGINT)
    raise SystemExit(code)


def _end(loop: asyncio.AbstractEventLoop, task: "asyncio.Task[Any]", ended_by: list[signal.Signals]) -> None:
    """Cancel the command, and again until it ends: a client may swallow a cancellation."""
    ended_by.append(signal.SIGTERM)
    task.cancel()
    loop.call_later(CANCEL_AGAIN_S, _end, loop, task, ended_by)
