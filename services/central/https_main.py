"""Runs an HTTPS process of central: the API server's client, the bus if wanted, the health port, and signals."""

import asyncio
import gc
import os
import sys
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from services.central.adapters.https.late_bus import LateBus
from services.central.serving.process import HttpsProcess
from services.central.settings import NAME as CENTRAL
from services.central.settings import CentralSettings
from shared.adapters.clock import SystemClock
from shared.adapters.health_http import HealthServer
from shared.adapters.kube.client import Kube
from shared.adapters.kube.objects import KubeObjects
from shared.adapters.process import UMASK, signals_set, start_as
from shared.ports import Clock, Objects
from shared.settings import CommonSettings, section


@dataclass(frozen=True, slots=True)
class HttpsParts:
    """The parts from which a process is built; `identity` names this run of it."""

    objects: Objects
    clock: Clock
    settings: CentralSettings
    identity: str
    bus: LateBus
    """Connected once somebody asks for it; the process answers without it, too."""


@dataclass(frozen=True, slots=True)
class HttpsPlan:
    """A process by name, the field manager of its writes, and how to build it."""

    name: str
    manager: str
    build: Callable[[HttpsParts], HttpsProcess]


async def run_https(plan: HttpsPlan, common: CommonSettings, raw: Mapping[str, Any]) -> int:
    """Answer, and say over HTTP whether it can, until SIGTERM, SIGINT or a death.

    Raises:
        BadConfig: a setting cannot be used.
        Unavailable: the HTTP port is taken.
    """
    settings = section(CentralSettings, raw, CENTRAL)
    clock, stop, kube = SystemClock(), asyncio.Event(), Kube(common.kubeconfig)
    objects, bus = KubeObjects(kube, clock, manager=plan.manager), LateBus(common, clock, name=plan.name)
    process = plan.build(HttpsParts(objects, clock, settings, f"{common.node}_{uuid.uuid4()}", bus))
    # Without the bus it answers from the API server's objects.
    health = HealthServer(healths=lambda: [process.health()], connected=lambda: True)
    try:
        await health.start(common.http_host, common.http_port)
        gc.freeze()  # what is imported by now stays for good: nobody waits until the collector has looked at it again
        with signals_set(stop):
            return await process.run(stop)
    finally:
        await health.close()
        await bus.close()
        await kube.close()


def run_alone(plan: HttpsPlan) -> NoReturn:
    """Run until a signal or a death, and exit."""

    async def run(common: CommonSettings, raw: Mapping[str, Any]) -> int:
        return await run_https(plan, common, raw)

    os.umask(UMASK)
    sys.exit(start_as(plan.name, run, os.environ))
