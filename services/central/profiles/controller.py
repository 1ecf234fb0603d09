"""The controller of colocation profiles: mirrors, the server that answers, its certificate, and the statuses."""

import asyncio
import contextlib

import structlog

from services.central.core.profiles.profile_documents import PROFILES
from services.central.core.profiles.profile_status import conditions_due
from services.central.leadership.leader import Leader
from services.central.profiles.mirrors import ProfileMirrors
from services.central.serving.serving import Serving
from shared.errors import SubletError
from shared.ports import Clock, Objects

log = structlog.get_logger()

CHECK_S = 30.0
"""Between two looks at statuses that nothing seems to have changed."""


class ProfileController:
    """Every replica answers; the leader renews the certificate and writes in each profile's status whether it works."""

    def __init__(self, mirrors: ProfileMirrors, serving: Serving, writer: "StatusWriter") -> None:
        self._mirrors, self.serving, self._writer = mirrors, serving, writer

    @property
    def failure(self) -> str:
        """Why pods would not be answered for; "" while they are."""
        return self.serving.failure

    async def run(self) -> None:
        """Work until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for mirror in self._mirrors.every:
                tasks.create_task(mirror.run(), name="central-profile-mirror")
            tasks.create_task(self.serving.run(), name="central-profile-server")
            tasks.create_task(self._writer.run(), name="central-profile-status")

    async def close(self) -> None:
        """Stop answering."""
        await self.serving.close()


class StatusWriter:
    """Writes the statuses of profiles while this central leads."""

    def __init__(
        self, mirrors: ProfileMirrors, objects: Objects, leader: Leader, clock: Clock, changed: asyncio.Event
    ) -> None:
        self._mirrors, self._objects, self._leader, self._clock = mirrors, objects, leader, clock
        self._changed = changed

    @property
    def leading(self) -> bool:
        """Whether this one writes."""
        return self._leader.leading

    async def run(self) -> None:
        """Work until cancelled: on every change, and again where something could not be written."""
        while True:
            self._changed.clear()
            with contextlib.suppress(SubletError):  # said by the mirrors, or somebody else leads
                await self.write()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(CHECK_S):
                    await self._changed.wait()

    async def write(self) -> None:
        """Bring every status to what is so.

        Raises:
            SubletError: the API server is away or refuses, or another one leads.
        """
        if not self.leading or self._mirrors.failure:
            return
        classes = self._mirrors.priority_classes
        for seen in self._mirrors.seen:
            conditions = conditions_due(seen, classes, self._clock.wall())
            if conditions is not None:
                document = {"metadata": {"name": seen.name}, "status": {"conditions": conditions}}
                await self._objects.patch(PROFILES, document, status=True)
                log.info("profile.judged", profile=seen.name, problem=seen.problem)
