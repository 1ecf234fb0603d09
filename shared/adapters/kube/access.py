"""`Access` holds the address and credentials of an API server: a pod's are read here, a kubeconfig by the official
client.

The official client is loaded only for a kubeconfig, which saves the node's agent its megabytes
(docs/facts/kubernetes.md#a-pods-way-to-the-api-server).
"""

import os
import ssl
from dataclasses import dataclass
from pathlib import Path

import aiohttp

from shared.errors import Refused, Unavailable
from shared.text_file import read_text

TOKEN = Path("/var/run/secrets/kubernetes.io/serviceaccount/token")
AUTHORITY = Path("/var/run/secrets/kubernetes.io/serviceaccount/ca.crt")
MAX_TOKEN_BYTES = 64 << 10
READ_BYTES = 2 << 20
"""So much of an answer is read ahead, and half the longest line of a watch: an object has 3 MB at most."""


@dataclass(frozen=True, slots=True)
class Access:
    """One server, the name and the proof of who asks, and what the connection is checked with."""

    server: str
    authorization: str = ""
    authority: str | None = None
    """The file of who signs the server's certificate; None: whom this machine trusts."""
    certificate: str | None = None
    key: str | None = None
    verified: bool = True
    server_name: str | None = None
    """The name in the server's certificate, if it differs from the address."""
    proxy: str | None = None
    by_environment: bool = False
    """Whether a proxy that the environment names is asked."""

    def open_session(self) -> aiohttp.ClientSession:
        """Connections to this server.

        Raises:
            OSError: a certificate cannot be used.
        """
        connector = aiohttp.TCPConnector(ssl=self._tls())
        return aiohttp.ClientSession(connector=connector, trust_env=self.by_environment, read_bufsize=READ_BYTES)

    def _tls(self) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=self.authority)
        if self.certificate is not None:
            context.load_cert_chain(self.certificate, keyfile=self.key)
        if not self.verified:
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        return context


def access_of_pod() -> Access:
    """The API server of the cluster in which this process runs, asked as the pod's service account.

    Raises:
        Unavailable: this is no pod, or its token cannot be read.
    """
    host, port = (os.environ.get(f"KUBERNETES_SERVICE_{name}", "") for name in ("HOST", "PORT"))
    if not host or not port:
        raise _no_way("KUBERNETES_SERVICE_HOST and _PORT are not set")
    try:
        token = read_text(TOKEN, what="token", max_bytes=MAX_TOKEN_BYTES).strip()
    except Refused as refusal:
        raise _no_way(str(refusal)) from refusal
    # A non-ASCII or multi-word token would break the request's header.
    if not token.isascii() or not token.isprintable() or not token:
        raise _no_way(f"token {TOKEN}: no token")
    # An IPv6 address contains colons.
    return Access(f"https://{f'[{host}]' if ':' in host else host}:{port}", f"Bearer {token}", str(AUTHORITY))


def _no_way(why: str) -> Unavailable:
    return Unavailable(
        f"no way to the API server by the service account of this pod: {why}; set `kubeconfig`", reason="kubeconfig"
    )
