"""Interfaces of an HTTPS process: requests, replies, the server and its certificate."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A request that was read whole."""

    path: str
    """As it was sent, without the query."""
    body: bytes = b""
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    """Names in lower case."""
    client: str | None = None
    """The common name of the certificate that the sender showed, of an authority that the server asks for."""


@dataclass(frozen=True, slots=True)
class Reply:
    """An HTTP status and a body of JSON."""

    status: int
    body: bytes


@dataclass(frozen=True, slots=True)
class Route:
    """A method, a path, its largest body in bytes, and its handler.

    `path` may end in `{rest:.*}`. `lost` receives the outcome of a request without an answer: `not_read`, `failed`.
    """

    method: str
    path: str
    most_bytes: int
    answer: Callable[[HttpRequest], Awaitable[Reply]]
    lost: Callable[[str], None]


class CertificateUser(Protocol):
    """Listens once it has a certificate."""

    async def use(self, certificate: bytes, key: bytes) -> None:
        """Begin to listen with this certificate, or show it to who comes from now on.

        Raises:
            Unavailable: it cannot be used, or the address cannot be had.
        """
        ...

    async def close(self) -> None:
        """Stop listening."""
        ...


class Certificates(Protocol):
    """The certificate that all replicas share."""

    async def current(self, *, writes: bool) -> tuple[bytes, bytes] | None:
        """Return certificate and key, renewed when necessary if this replica `writes`; None while there is none.

        Raises:
            SubletError: they cannot be read or written now.
        """
        ...
