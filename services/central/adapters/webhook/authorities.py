"""The webhook configurations, which name the certificate authority to trust."""

import base64
from typing import Any

import structlog

from services.central.adapters.https.serving_secret import trusted_bundle
from shared.core.api_kind import ApiKind
from shared.ports import Objects

log = structlog.get_logger()

_GROUP = "admissionregistration.k8s.io"
CONFIGURATIONS = (
    ApiKind(_GROUP, "v1", "MutatingWebhookConfiguration", "mutatingwebhookconfigurations", status=False),
    ApiKind(_GROUP, "v1", "ValidatingWebhookConfiguration", "validatingwebhookconfigurations", status=False),
)

Document = dict[str, Any]


class WebhookAuthorities:
    """Writes the authorities into both webhook configurations of one name."""

    def __init__(self, objects: Objects, configuration: str) -> None:
        self._objects, self._configuration = objects, configuration

    async def publish(self, authorities: bytes, *, all_of_before: bool) -> None:
        """Let the API server trust these, and with `all_of_before` also what it trusts today.

        Raises:
            SubletError: the API server is away or refuses, or another one leads.
        """
        for kind in CONFIGURATIONS:
            document = await self._objects.get(kind, self._configuration)
            hooks = [] if document is None else list(document.get("webhooks") or ())
            told = [_trusting(hook, authorities, all_of_before=all_of_before) for hook in hooks]
            if document is None or told == hooks:
                continue
            meta = {"name": self._configuration, "resourceVersion": document["metadata"]["resourceVersion"]}
            await self._objects.patch(kind, {"metadata": meta, "webhooks": told})
            log.info("webhook.authority_told", kind=kind.kind)


def _trusting(hook: Document, authorities: bytes, *, all_of_before: bool) -> Document:
    client = hook["clientConfig"]
    before = base64.b64decode(client.get("caBundle") or "")
    bundle = trusted_bundle(authorities, before, all_of_before=all_of_before)
    return hook | {"clientConfig": client | {"caBundle": bundle}}
