"""The Secret in which all centrals share the webhook's certificate, and what the API server is told to trust."""

import base64
import binascii
from collections.abc import Mapping
from typing import Any

import structlog

from services.central.adapters.webhook.certificate import ServingPair, renewed
from services.central.settings import WebhookSettings
from shared.core.api_kind import ApiKind
from shared.errors import Refused
from shared.ports import Clock, Objects

log = structlog.get_logger()

SECRETS = ApiKind("", "v1", "Secret", "secrets", namespaced=True, status=False)
_GROUP = "admissionregistration.k8s.io"
CONFIGURATIONS = (
    ApiKind(_GROUP, "v1", "MutatingWebhookConfiguration", "mutatingwebhookconfigurations", status=False),
    ApiKind(_GROUP, "v1", "ValidatingWebhookConfiguration", "validatingwebhookconfigurations", status=False),
)
_FIELDS = {"ca.crt": "authorities", "ca.key": "authority_key", "tls.crt": "certificate", "tls.key": "key"}

MOST_TRUSTED_BYTES = 8 << 10
"""Of authorities that are kept beside a new one: where none could be stored many times, the oldest go."""

Document = dict[str, Any]


class WebhookSecret:
    """Reads the Secret; the leader makes and renews it, and tells the API server of an authority before it is used."""

    def __init__(self, objects: Objects, clock: Clock, settings: WebhookSettings) -> None:
        self._objects, self._clock, self._settings = objects, clock, settings

    async def current(self, *, writes: bool) -> tuple[bytes, bytes] | None:
        """Certificate and key; None while there is none and this one does not write.

        Raises:
            SubletError: the API server is away or refuses, or another one leads.
        """
        there = await self._objects.get(SECRETS, self._settings.secret, self._settings.namespace)
        held = None if there is None else _pair(there)
        if writes:
            held = await self._renew(there, held)
        return None if held is None else (held.certificate, held.key)

    async def _renew(self, there: Mapping[str, Any] | None, held: ServingPair | None) -> ServingPair:
        made = renewed(held, self._settings.names, self._clock.wall())
        wanted = made or held
        if wanted is None:
            raise Refused("no certificate was made", reason="certificate")
        await self._publish(wanted.authorities, all_of_before=made is not None)
        if made is not None:
            await self._write(there, made)
            log.info("webhook.certificate_made", secret=self._settings.secret)
        return wanted

    async def _write(self, there: Mapping[str, Any] | None, pair: ServingPair) -> None:
        meta = {"name": self._settings.secret, "namespace": self._settings.namespace}
        data = {key: base64.b64encode(getattr(pair, field)).decode() for key, field in _FIELDS.items()}
        if there is None:
            await self._objects.create(SECRETS, {"metadata": meta, "type": "kubernetes.io/tls", "data": data})
            return
        # With its version: the one who led before may be writing still.
        version = {"resourceVersion": there["metadata"]["resourceVersion"]}
        await self._objects.patch(SECRETS, {"metadata": meta | version, "data": data})

    async def _publish(self, authorities: bytes, *, all_of_before: bool) -> None:
        """Let the API server trust these; configurations that are not there are switched off.

        `all_of_before`: also what it trusts today. A Secret that somebody deleted says nothing of the authority whose
        certificate another central shows until its next look.
        """
        for kind in CONFIGURATIONS:
            document = await self._objects.get(kind, self._settings.configuration)
            hooks = [] if document is None else list(document.get("webhooks") or ())
            told = [_trusting(hook, authorities, all_of_before=all_of_before) for hook in hooks]
            if document is None or told == hooks:
                continue
            meta = {"name": self._settings.configuration, "resourceVersion": document["metadata"]["resourceVersion"]}
            await self._objects.patch(kind, {"metadata": meta, "webhooks": told})
            log.info("webhook.authority_told", kind=kind.kind)


def _trusting(hook: Document, authorities: bytes, *, all_of_before: bool) -> Document:
    """The webhook with these authorities, and those that it has as far as that is asked for and has a bound."""
    client = hook["clientConfig"]
    before = base64.b64decode(client.get("caBundle") or "")
    if all_of_before and before not in authorities and len(before) <= MOST_TRUSTED_BYTES:
        authorities += before
    return hook | {"clientConfig": client | {"caBundle": base64.b64encode(authorities).decode()}}


def _pair(document: Mapping[str, Any]) -> ServingPair | None:
    """What the Secret holds; None where a part is missing or is no base64."""
    data = document.get("data") or {}
    try:
        return ServingPair(**{field: base64.b64decode(data[key], validate=True) for key, field in _FIELDS.items()})
    except (KeyError, TypeError, ValueError, binascii.Error):
        return None
