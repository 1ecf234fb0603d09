"""Asks who comes for a certificate of the authority that signed the server's own: such a one is a scheduler of ours."""

from collections.abc import Callable

from services.central.adapters.https.server import HttpsServer


class SchedulerServer:
    """Answers clients without a certificate as well, without a name."""

    def __init__(self, server: HttpsServer, authorities: Callable[[], bytes]) -> None:
        self._server, self._authorities = server, authorities

    async def use(self, certificate: bytes, key: bytes) -> None:
        """Begin to listen with this certificate, or show it to who comes from now on.

        Raises:
            Unavailable: it cannot be used, or the address cannot be had.
        """
        self._server.ask_for(self._authorities())
        await self._server.use(certificate, key)

    async def close(self) -> None:
        """Stop listening."""
        await self._server.close()
