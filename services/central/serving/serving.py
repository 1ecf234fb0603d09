"""Listens with the current certificate, once there is something to answer with."""

from collections.abc import Callable

import structlog

from services.central.ports.https import Certificates, CertificateUser
from shared.errors import SubletError
from shared.ports import Clock

log = structlog.get_logger()

CHECK_S = 30.0
"""Between two looks at the certificate: another replica may have made the next one."""
RETRY_S = 2.0


class Serving:
    """Keeps a server listening; the leader renews the certificate, every replica uses it.

    `missing` names what is needed before the first answer, "" if nothing is missing: until then the port is closed.
    `leading` says whether this replica writes.
    """

    def __init__(
        self,
        server: CertificateUser,
        certificates: Certificates,
        clock: Clock,
        *,
        missing: Callable[[], str],
        leading: Callable[[], bool],
    ) -> None:
        self._server, self._certificates, self._clock = server, certificates, clock
        self._missing, self._leading = missing, leading
        self._why, self._serving = "no certificate yet", False

    @property
    def failure(self) -> str:
        """Why no request would be answered; "" if requests are.

        A later failure to read the certificate does not count: the one in use is valid for weeks.
        """
        return "" if self._serving else self._why or self._missing()

    async def run(self) -> None:
        """Work until cancelled."""
        while True:
            await self._clock.sleep(CHECK_S if await self.serve() else RETRY_S)

    async def close(self) -> None:
        """Stop answering."""
        await self._server.close()

    async def serve(self) -> bool:
        """Answer with the certificate of now; whether that works."""
        try:
            if why := self._missing():
                self._why = why
                return False
            found = await self._certificates.current(writes=self._leading())
            if found is None:
                self._why = "no certificate yet: the leader makes it"
                return False
            await self._server.use(*found)
        except SubletError as error:
            if self._why != str(error):
                log.warning("https.not_served", why=str(error))
            self._why = str(error)
            return False
        self._why, self._serving = "", True
        return True
