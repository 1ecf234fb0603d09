"""The commands' way to the bus: find the server, ask the services, end in one clear line when nobody is there."""

import asyncio
import contextlib
import json
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from shared.contracts.subjects import ask_subject
from shared.errors import SubletError, Unavailable
from shared.ports import Bus
from shared.settings import SECTIONS, CommonSettings, common_settings, raw_settings

NOT_THERE = 3
"""Exit code: no NATS server, or nobody who could answer."""
CONNECT_TIMEOUT_S = 2.0
ANSWER_TIMEOUT_S = 2.0

Answers = Mapping[str, Mapping[str, Any] | None]
"""Each service's own account of itself by its name; None where it does not answer."""


class NobodyThere(Unavailable):
    """There is no server to ask."""


@dataclass(frozen=True, slots=True)
class Target:
    """Which node to ask about, and through which server."""

    node: str
    nats_url: str
    services: tuple[str, ...] = SECTIONS
    """Those that answer for the node: on Kubernetes central is the cluster's, and nodes have no way to ask it."""


def target() -> Target:
    """From the settings; what they leave open is taken from a `sublet up` that runs on this machine."""
    raw = raw_settings()
    common = common_settings(raw)
    running = _running(common)
    return Target(
        services=tuple(name for name in SECTIONS if common.substrate != "kubernetes" or name != "central"),
        node=common.node if "node" in raw else str(running.get("node", common.node)),
        nats_url=common.nats_url if "nats_url" in raw else str(running.get("nats_url", common.nats_url)),
    )


def _running(common: CommonSettings) -> Mapping[str, Any]:
    path: Path = common.state_dir / "up.json"
    try:
        facts = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return facts if isinstance(facts, dict) else {}


@contextlib.asynccontextmanager
async def connected(where: Target) -> AsyncIterator[Bus]:
    """A bus client for as long as the command runs.

    Raises:
        NobodyThere: no server at that address.
        Unavailable: the server does not take this login.
    """
    from shared import telemetry
    from shared.adapters.clock import SystemClock
    from shared.adapters.nats_bus import connect
    from shared.adapters.nats_link import without_secrets

    telemetry.setup_logging(
        "sublet", where.node, as_json=False, level="critical"
    )  # a command says what is wrong itself
    try:
        bus = await connect(
            where.nats_url, name=f"cli/{where.node}", connect_timeout_s=CONNECT_TIMEOUT_S, clock=SystemClock()
        )
    except Unavailable as error:
        if error.reason == "login":
            raise
        raise NobodyThere(
            f"no NATS server at {without_secrets(where.nats_url)}: "
            "start Sublet with `sudo sublet up`, or set SUBLET_NATS_URL"
        ) from error
    try:
        yield bus
    finally:
        await bus.drain()


async def ask(bus: Bus, node: str, service: str) -> Mapping[str, Any] | None:
    """One service's state; None when it does not answer in time, or not with a mapping."""
    try:
        answer = json.loads(await bus.request(ask_subject(node, service), timeout_s=ANSWER_TIMEOUT_S))
    except (Unavailable, ValueError):
        return None
    return answer if isinstance(answer, dict) else None


async def ask_all(bus: Bus, node: str, services: Sequence[str]) -> Answers:
    """Several services at once."""
    answers = await asyncio.gather(*(ask(bus, node, service) for service in services))
    return dict(zip(services, answers, strict=True))


def run(work: Callable[[Bus, Target], Awaitable[int]]) -> NoReturn:
    """Run a command on the bus and end the process: 0, the command's own code, or one line of why not."""

    async def connected_work() -> int:
        # As Ctrl-C: the first process of a container would not even notice a SIGTERM.
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, signal.raise_signal, signal.SIGINT)
        where = target()
        async with connected(where) as bus:
            return await work(bus, where)

    try:
        code = asyncio.run(connected_work())
    except SubletError as error:
        print(f"sublet: {error}", file=sys.stderr)
        code = NOT_THERE if isinstance(error, Unavailable) else 2
    except KeyboardInterrupt:
        code = 130
    raise SystemExit(code)
