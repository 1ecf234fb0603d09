"""The server of the metrics API, which requires a certificate of the current front proxy."""

from collections.abc import Callable

from services.central.adapters.https.server import HttpsServer
from services.central.core.custom_metrics.front_proxy import FrontProxy


class ProxiedServer:
    """Listens with its own certificate, and requests one of the proxy's authorities."""

    def __init__(self, server: HttpsServer, proxy: Callable[[], FrontProxy | None]) -> None:
        self._server, self._proxy = server, proxy

    async def use(self, certificate: bytes, key: bytes) -> None:
        """Begin to listen, or show this certificate from now on, and ask for the proxy's of now.

        Raises:
            Unavailable: the certificate or the proxy's authorities cannot be used, or the address cannot be had.
        """
        proxy = self._proxy()
        # Without a proxy no request is answered, so the last authorities do no harm meanwhile.
        if proxy is not None:
            self._server.ask_for(proxy.authorities.encode())
        await self._server.use(certificate, key)

    async def close(self) -> None:
        """Stop listening."""
        await self._server.close()
