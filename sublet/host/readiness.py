"""Waits until all services of a run report over the bus that they are well, or the time is up."""

import asyncio
import time
from collections.abc import Mapping
from typing import Any

from shared.contracts.services import CENTRAL, NODE_SERVICES, SERVICES
from shared.errors import SubletError
from shared.ports import Bus
from sublet.ask import Answers, ask_all
from sublet.output import printable

HEALTHY_TIMEOUT_S = 20.0
ASK_PERIOD_S = 0.2
SAID_CHARACTERS = 200
SILENT = "does not answer"


async def wait_healthy(bus: Bus, node: str) -> dict[str, str]:
    """Services that are still not well when the time is up, each with why; none as soon as all are."""
    end_s = time.monotonic() + HEALTHY_TIMEOUT_S
    while True:
        try:
            found = unwell(await ask_all(bus, node, SERVICES))
        except SubletError as error:
            found = dict.fromkeys(SERVICES, str(error))
        if not found or time.monotonic() >= end_s:
            return found
        await asyncio.sleep(ASK_PERIOD_S)


def unwell(answers: Answers) -> dict[str, str]:
    """Services that do not answer, or say that they are not well; the reporter tells it of all services of a node."""
    found = {name: SILENT for name in SERVICES if answers.get(name) is None}
    told: Any = (answers.get("reporter") or {}).get("services")
    rows = told if isinstance(told, list) else []
    by_name = {one.get("service"): one for one in rows if isinstance(one, Mapping)}
    for name in NODE_SERVICES:
        if name not in found and (why := _why(by_name.get(name))):
            found[name] = why
    central = (answers.get(CENTRAL) or {}).get("health")
    if CENTRAL not in found and (why := _why(central)):
        found[CENTRAL] = why
    return found


def _why(health: Any) -> str:
    """Why a service is not well; "" where it is."""
    if not isinstance(health, Mapping):
        return "nothing is heard of its health yet"
    if health.get("ok") is True:
        return ""
    return printable(str(health.get("why") or "not well"))[:SAID_CHARACTERS]
