"""The controller of colocation profiles: mirrors, the server that answers, its certificate, and the statuses."""

import asyncio
import contextlib
from typing import Protocol

import structlog

from services.central.core.profiles.profile_documents import PROFILES
from services.central.core.profiles.profile_status import conditions_due
from services.central.leadership.leader import Leader
from services.central.profiles.mirrors import ProfileMirrors
from shared.errors import SubletError
from shared.ports import Clock, Objects

log = structlog.get_logger()

CHECK_S = 30.0
"""Between two looks at the certificate: another replica may have made the next one."""
RETRY_S = 2.0


class ReviewServer(Protocol):
    """Listens for the API server."""

    async def use(self, certificate: bytes, key: bytes) -> None:
        """Begin to listen with this certificate, or show it to who comes from now on.

        Raises:
            Unavailable: the address cannot be had.
        """
        ...

    async def close(self) -> None:
        """Stop listening."""
        ...


class Certificates(Protocol):
    """The certificate that all replicas share."""

    async def current(self, *, writes: bool) -> tuple[bytes, bytes] | None:
        """Certificate and key, made anew when it is time and this one `writes`; None while there is none.

        Raises:
            SubletError: they cannot be read or written now.
        """
        ...


class ProfileController:
    """Every replica answers; the leader renews the certificate and says in each profile's status whether it works."""

    def __init__(
        self,
        mirrors: ProfileMirrors,
        server: ReviewServer,
        certificates: Certificates,
        writer: "StatusWriter",
        clock: Clock,
    ) -> None:
        self._mirrors, self._server, self._certificates = mirrors, server, certificates
        self._writer, self._clock = writer, clock
        self._why, self._serving = "no certificate yet", False

    @property
    def failure(self) -> str:
        """Why pods would not be answered for; "" while they are.

        A look at the certificate that fails later does not end that: the one that is shown is good for weeks.
        """
        return "" if self._serving else self._why or self._mirrors.failure

    async def run(self) -> None:
        """Work until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for mirror in self._mirrors.every:
                tasks.create_task(mirror.run(), name="central-profile-mirror")
            tasks.create_task(self._serve_forever(), name="central-profile-server")
            tasks.create_task(self._writer.run(), name="central-profile-status")

    async def close(self) -> None:
        """Answer nobody any more."""
        await self._server.close()

    async def _serve_forever(self) -> None:
        while True:
            await self._clock.sleep(CHECK_S if await self.serve() else RETRY_S)

    async def serve(self) -> bool:
        """Answer with the certificate of now; whether that works."""
        try:
            # Before the first list a pod would be answered without its profiles: nobody listens until then.
            if why := self._mirrors.failure:
                self._why = why
                return False
            found = await self._certificates.current(writes=self._writer.leading)
            if found is None:
                self._why = "no certificate yet: the leader makes it"
                return False
            await self._server.use(*found)
        except SubletError as error:
            if self._why != str(error):
                log.warning("profiles.not_served", why=str(error))
            self._why = str(error)
            return False
        self._why, self._serving = "", True
        return True


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
