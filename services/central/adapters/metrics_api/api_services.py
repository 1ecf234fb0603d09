"""The APIServices of the metrics APIs, which name the certificate authority to trust."""

import base64

import structlog

from services.central.adapters.https.serving_secret import trusted_bundle
from services.central.core.custom_metrics.paths import VERSIONS
from shared.core.api_kind import ApiKind
from shared.core.text.document import mapping
from shared.ports import Objects

log = structlog.get_logger()

API_SERVICES = ApiKind("apiregistration.k8s.io", "v1", "APIService", "apiservices")
NAMES = tuple(f"{version}.{group}" for group, versions in VERSIONS.items() for version in versions)


class ApiServiceAuthorities:
    """Writes the authorities into the APIServices that point to our Service, and leaves those of others alone."""

    def __init__(self, objects: Objects, service: str, namespace: str) -> None:
        self._objects, self._service, self._namespace = objects, service, namespace

    async def publish(self, authorities: bytes, *, all_of_before: bool) -> None:
        """Let the API server trust these, and with `all_of_before` also what it trusts today.

        Raises:
            SubletError: the API server is away or refuses, or another one leads.
        """
        for name in NAMES:
            document = await self._objects.get(API_SERVICES, name)
            if document is None:
                continue
            spec = mapping(document.get("spec"), f"APIService {name}, spec")
            service = mapping(spec.get("service"), f"APIService {name}, spec.service")
            if (service.get("name"), service.get("namespace")) != (self._service, self._namespace):
                log.warning("api_service.of_another", name=name, points_at=service.get("name"))
                continue
            before = base64.b64decode(spec.get("caBundle") or "")
            bundle = trusted_bundle(authorities, before, all_of_before=all_of_before)
            if spec.get("caBundle") == bundle:
                continue
            meta = {"name": name, "resourceVersion": document["metadata"]["resourceVersion"]}
            await self._objects.patch(API_SERVICES, {"metadata": meta, "spec": {"caBundle": bundle}})
            log.info("api_service.authority_told", name=name)
