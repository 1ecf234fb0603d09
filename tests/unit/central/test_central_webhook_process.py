"""The webhook's own process: it answers without any bus, says when it can, and leaves without losing a pod."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import aiohttp
import pytest
from bus_rights_rig import free_port

from services.central.core.profiles.profile_documents import PROFILES
from services.central.profiles.controller import ProfileController
from services.central.serving.process import LEAVE_S
from services.central.serving.serving import Serving
from services.central.settings import WebhookSettings
from services.central.webhook import build_webhook
from shared.adapters.clock import SystemClock
from shared.core.api_kind import LEASES
from shared.errors import Unavailable
from shared.fakes.memory_objects import MemoryObjects

Until = Callable[[Callable[[], object]], Awaitable[None]]
SETTINGS = WebhookSettings(host="127.0.0.1", port=0)
PROFILE = {"metadata": {"name": "batch"}, "spec": {"qosClass": "BE"}}


class HeldClock(SystemClock):
    """Time as it is, but for the one wait whose end a test says."""

    def __init__(self) -> None:
        super().__init__()
        self.leaving, self.gone = asyncio.Event(), asyncio.Event()

    async def sleep(self, seconds: float) -> None:
        if seconds != LEAVE_S:
            return await super().sleep(seconds)
        self.leaving.set()
        await self.gone.wait()
        return None


@dataclass
class Replica:
    """One process, and how to end it."""

    api: MemoryObjects
    clock: HeldClock = field(default_factory=HeldClock)
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    settings: WebhookSettings = SETTINGS

    def __post_init__(self) -> None:
        self.process = build_webhook(self.api, self.clock, self.settings, "webhook-0")

    @property
    def serving(self) -> Serving:
        assert isinstance(self.process.answering, ProfileController)
        return self.process.answering.serving

    @property
    def ready(self) -> bool:
        return self.process.health().ok


@asynccontextmanager
async def running(
    api: MemoryObjects, settings: WebhookSettings = SETTINGS
) -> AsyncIterator[tuple[Replica, "asyncio.Task[int]"]]:
    one = Replica(api, settings=settings)
    task = asyncio.create_task(one.process.run(one.stop))
    try:
        yield one, task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def cluster() -> MemoryObjects:
    api = MemoryObjects(SystemClock())
    api.put(PROFILES, PROFILE)
    return api


async def test_a_replica_is_ready_once_it_answers_and_holds_a_lease_of_its_own(until: Until) -> None:
    api = cluster()
    async with running(api) as (one, _):
        assert not one.ready
        await until(lambda: one.ready)
        lease = api.documents[LEASES, SETTINGS.namespace, "sublet-webhook"]
        assert lease["spec"]["holderIdentity"] == "webhook-0"


async def test_without_profiles_a_replica_is_ready_without_reading_any_and_says_nothing_of_them(until: Until) -> None:
    api = cluster()
    async with running(api, SETTINGS.model_copy(update={"profiles": False})) as (one, _):
        await until(lambda: one.ready)
        for mirror in api.mirrors:
            with pytest.raises(Unavailable, match="not listed"):
                _ = mirror.objects
        assert not [what for what in api.writes if PROFILES.plural in what]


async def test_a_replica_without_its_profiles_is_not_ready() -> None:
    api = cluster()
    api.online = False
    async with running(api) as (one, _):
        await asyncio.sleep(0)
        assert "no certificate yet" in one.process.health().why


async def test_who_answers_stays_ready_while_the_api_server_gives_no_certificate(until: Until) -> None:
    api = cluster()
    async with running(api) as (one, _):
        await until(lambda: one.ready)
        api.go_offline()
        assert not await one.serving.serve()
        assert one.ready


async def test_who_is_told_to_end_answers_on_while_the_api_server_may_come(until: Until) -> None:
    async with running(cluster()) as (one, task):
        await until(lambda: one.ready)
        one.stop.set()
        await one.clock.leaving.wait()
        assert one.process.health().why == "ends soon"
        assert one.process.answering.failure == ""
        assert not task.done()
        one.clock.gone.set()
        assert await task == 0


async def test_who_is_told_to_end_lets_another_write_statuses_before_he_has_gone(until: Until) -> None:
    """Answers go on, the lease does not: else no status of a profile would be written until it has run out."""
    api = cluster()
    async with running(api) as (one, task):
        await until(lambda: one.ready)
        one.stop.set()
        await one.clock.leaving.wait()
        assert api.documents[LEASES, SETTINGS.namespace, "sublet-webhook"]["spec"]["holderIdentity"] == ""
        assert not task.done()
        one.clock.gone.set()
        assert await task == 0
        assert api.documents[LEASES, SETTINGS.namespace, "sublet-webhook"]["spec"]["holderIdentity"] == ""


async def test_a_part_that_dies_ends_the_process_and_leaves_the_lease(until: Until) -> None:
    api = cluster()
    async with running(api) as (one, task):
        await until(lambda: one.ready)

        async def dies() -> bool:
            raise RuntimeError("as by a slip")

        one.serving.serve = dies  # type: ignore[method-assign]
        assert await task == 1
        assert api.documents[LEASES, SETTINGS.namespace, "sublet-webhook"]["spec"]["holderIdentity"] == ""


async def test_the_same_port_answers_about_koordinators_config_map(until: Until) -> None:
    settings = WebhookSettings(host="127.0.0.1", port=free_port())
    process = build_webhook(cluster(), SystemClock(), settings, "webhook-0")
    task = asyncio.create_task(process.run(asyncio.Event()))
    bad = {"metadata": {}, "data": {"system-config": "{"}}
    review = {"kind": "AdmissionReview", "request": {"uid": "u-1", "operation": "CREATE", "object": bad}}
    try:
        await until(lambda: process.health().ok)
        url = f"https://127.0.0.1:{settings.port}/validate-slo-config"
        async with aiohttp.ClientSession() as session, session.post(url, json=review, ssl=False) as response:
            answer = json.loads(await response.read())["response"]
        assert (answer["allowed"], "system-config" in answer["status"]["message"]) == (False, True)
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
