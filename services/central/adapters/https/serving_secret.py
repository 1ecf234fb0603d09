"""The Secret in which all replicas of a process share their certificate, and the authorities that the API server
trusts."""

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import structlog

from services.central.adapters.https.certificate import ServingPair, renewed
from shared.core.api_kind import ApiKind
from shared.errors import Refused
from shared.ports import Clock, Objects

log = structlog.get_logger()

SECRETS = ApiKind("", "v1", "Secret", "secrets", namespaced=True, status=False)
_FIELDS = {"ca.crt": "authorities", "ca.key": "authority_key", "tls.crt": "certificate", "tls.key": "key"}

MOST_TRUSTED_BYTES = 8 << 10
"""Bytes of former authorities that are kept next to a new one; the oldest are dropped if none could be stored for
long."""


@dataclass(frozen=True, slots=True)
class ServingNames:
    """The Secret's name and namespace, and the names by which the server is called."""

    secret: str
    namespace: str
    servers: tuple[str, ...]


class TrustedAuthorities(Protocol):
    """The objects by which the API server knows whose certificates to trust."""

    async def publish(self, authorities: bytes, *, all_of_before: bool) -> None:
        """Let the API server trust these authorities, in PEM; missing objects mean that the feature is off.

        `all_of_before`: also keep what it trusts today. A deleted Secret says nothing about the authority whose
        certificate another replica shows until its next check.

        Raises:
            SubletError: the API server is away or refuses, or another one leads.
        """
        ...


class ServingSecret:
    """Reads the Secret; the leader creates and renews it, and publishes an authority to the API server before it is
    used."""

    def __init__(
        self, objects: Objects, clock: Clock, names: ServingNames, trusted: TrustedAuthorities | None = None
    ) -> None:
        self._objects, self._clock, self._names, self._trusted = objects, clock, names, trusted
        self.authorities = b""
        """In PEM, of the certificate that was read last."""

    async def current(self, *, writes: bool) -> tuple[bytes, bytes] | None:
        """Return certificate and key; None while there is none and this replica does not write.

        Raises:
            SubletError: the API server is away or refuses, or another one leads.
        """
        there = await self._objects.get(SECRETS, self._names.secret, self._names.namespace)
        held = None if there is None else _pair(there)
        if writes:
            held = await self._renew(there, held)
        if held is None:
            return None
        self.authorities = held.authorities
        return held.certificate, held.key

    async def _renew(self, there: Mapping[str, Any] | None, held: ServingPair | None) -> ServingPair:
        made = renewed(held, self._names.servers, self._clock.wall())
        wanted = made or held
        if wanted is None:
            raise Refused("no certificate was made", reason="certificate")
        if self._trusted is not None:
            await self._trusted.publish(wanted.authorities, all_of_before=made is not None)
        if made is not None:
            await self._write(there, made)
            log.info("certificate.made", secret=self._names.secret)
        return wanted

    async def _write(self, there: Mapping[str, Any] | None, pair: ServingPair) -> None:
        meta = {"name": self._names.secret, "namespace": self._names.namespace}
        data = {key: base64.b64encode(getattr(pair, field)).decode() for key, field in _FIELDS.items()}
        if there is None:
            await self._objects.create(SECRETS, {"metadata": meta, "type": "kubernetes.io/tls", "data": data})
            return
        # With its version, because the former leader may still be writing.
        version = {"resourceVersion": there["metadata"]["resourceVersion"]}
        await self._objects.patch(SECRETS, {"metadata": meta | version, "data": data})


def trusted_bundle(authorities: bytes, before: bytes, *, all_of_before: bool) -> str:
    """A `caBundle` of these authorities, and of those before as far as that is asked for and has a bound; in base64."""
    if all_of_before and before not in authorities and len(before) <= MOST_TRUSTED_BYTES:
        authorities += before
    return base64.b64encode(authorities).decode()


def _pair(document: Mapping[str, Any]) -> ServingPair | None:
    """Return the pair in the Secret; None if a part is missing or not base64."""
    data = document.get("data") or {}
    try:
        return ServingPair(**{field: base64.b64decode(data[key], validate=True) for key, field in _FIELDS.items()})
    except (KeyError, TypeError, ValueError, binascii.Error):
        return None
