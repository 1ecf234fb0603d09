"""`python -m services.central.webhook`: the webhook alone in its process, which answers the API server about pods, and
about Koordinator's ConfigMap.

It needs the API server and nothing else, so pods are answered for while NATS, or central, is away. Its readiness is
its own: the API server is sent to one that has its profiles and its certificate, and to no other.
"""

import asyncio
import gc
import os
import sys
import uuid
from collections.abc import Mapping
from typing import Any, NoReturn

import structlog

from services.central.adapters.webhook.secret import WebhookSecret
from services.central.adapters.webhook.server import WebhookServer
from services.central.leadership.leader import Leader
from services.central.leadership.objects import LeaderObjects
from services.central.profiles.answers import Asked, ProfileAnswers, Reply
from services.central.profiles.controller import ProfileController, StatusWriter
from services.central.profiles.mirrors import ProfileMirrors
from services.central.settings import NAME as CENTRAL
from services.central.settings import CentralSettings, LeaseSettings, WebhookSettings
from services.central.slo.answers import SloConfigAnswers
from shared.adapters.clock import SystemClock
from shared.adapters.health_http import HealthServer
from shared.adapters.kube.client import Kube
from shared.adapters.kube.objects import KubeObjects
from shared.adapters.process import DIED, UMASK, signals_set, start_as
from shared.app import end_tasks
from shared.contracts.readiness import ServiceHealth
from shared.ports import Clock, Objects
from shared.settings import CommonSettings, section

log = structlog.get_logger()

NAME, MANAGER = "webhook", "sublet-webhook"
LEAVE_S = 5.0
"""Answered on after SIGTERM: so long the API server may still be sent here."""


class WebhookProcess:
    """One of the replicas: all answer, the holder of the Lease makes the certificate and writes statuses."""

    def __init__(self, objects: Objects, clock: Clock, settings: WebhookSettings, identity: str) -> None:
        self._clock, self._leaving = clock, False
        lease = LeaseSettings(name=settings.service, namespace=settings.namespace)
        self._leader = Leader(objects, clock, identity, lease)
        self.profiles = build_profiles(objects, clock, settings, self._leader)

    def health(self) -> ServiceHealth:
        """Well while the API server may be sent here."""
        why = "ends soon" if self._leaving else self.profiles.failure
        return ServiceHealth(service=NAME, ok=not why, why=why)

    async def run(self, stop: asyncio.Event) -> int:
        """Answer until `stop` is set (exit code 0) or something dies (exit code 1)."""
        stopping = asyncio.create_task(stop.wait(), name="stop")
        leading = asyncio.create_task(self._leader.run(_lead), name="webhook-leader")
        tasks = [leading, asyncio.create_task(self.profiles.run(), name="webhook-profiles")]
        try:
            done, _ = await asyncio.wait({stopping, *tasks}, return_when=asyncio.FIRST_COMPLETED)
            died = [task for task in tasks if task in done]
            for task in died:
                log.error("process.died", task=task.get_name(), exc_info=task.exception())
            if not died:
                self._leaving = True
                # Before the wait, in which another replica may lead already; its own task would take it back.
                await end_tasks([leading])
                await self._leader.release()
                await self._clock.sleep(LEAVE_S)
            return DIED if died else 0
        finally:
            await end_tasks([stopping, *tasks])
            await self._leader.release()
            await self.profiles.close()


async def _lead() -> None:
    """To lead is to be let write: who does looks at the leader before each write."""
    await asyncio.Event().wait()


def build_profiles(objects: Objects, clock: Clock, settings: WebhookSettings, leader: Leader) -> ProfileController:
    """Mirrors, server, certificate and statuses; every writer goes through the leader."""
    writing, changed = LeaderObjects(objects, leader), asyncio.Event()
    mirrors = ProfileMirrors(objects, changed, applied=settings.profiles)
    pods, slo_config = ProfileAnswers(mirrors, objects, clock), SloConfigAnswers(clock)

    async def answer(asked: Asked, text: bytes) -> Reply:
        if asked == "validate_slo":
            return Reply(*await slo_config.answer(text))
        return await pods.answer(asked, text)

    server = WebhookServer(answer, host=settings.host, port=settings.port)
    writer = StatusWriter(mirrors, writing, leader, clock, changed)
    return ProfileController(mirrors, server, WebhookSecret(writing, clock, settings), writer, clock)


async def run_webhook(common: CommonSettings, raw: Mapping[str, Any]) -> int:
    """Answer, and say over HTTP whether it can, until SIGTERM, SIGINT or a death.

    Raises:
        BadConfig: a setting cannot be used.
        Unavailable: the HTTP port is taken.
    """
    settings = section(CentralSettings, raw, CENTRAL).kubernetes.webhook or WebhookSettings()
    clock, stop, kube = SystemClock(), asyncio.Event(), Kube(common.kubeconfig)
    process = WebhookProcess(
        KubeObjects(kube, clock, manager=MANAGER), clock, settings, f"{common.node}_{uuid.uuid4()}"
    )
    # There is no bus here that could be missing.
    health = HealthServer(healths=lambda: [process.health()], connected=lambda: True)
    try:
        await health.start(common.http_host, common.http_port)
        gc.freeze()  # what is imported by now stays for good: no pod waits until the collector has looked at it again
        with signals_set(stop):
            return await process.run(stop)
    finally:
        await health.close()
        await kube.close()


def main() -> NoReturn:
    """Run until a signal or a death, and exit."""
    os.umask(UMASK)
    sys.exit(start_as(NAME, run_webhook, os.environ))


if __name__ == "__main__":
    main()
