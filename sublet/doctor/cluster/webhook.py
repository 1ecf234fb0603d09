"""Checks the webhook of colocation profiles: whether the API server reaches and trusts it. Pure."""

import base64
import binascii
from typing import Any

from sublet.doctor.cluster.api import CHART, not_installed
from sublet.doctor.cluster.facts import ClusterFacts, Document
from sublet.doctor.cluster.rights import WEBHOOK, WEBHOOK_CONFIGURATION, WEBHOOK_SECRET
from sublet.doctor.finding import Finding, Unknown, ok, problem, unchecked

END = "-----END CERTIFICATE-----"
UNCHANGED, UNCHECKED = "pods are created without their profiles", "a faulty ConfigMap is stored as it is"


def profiles(facts: ClusterFacts) -> Finding:
    """Whether the API server is sent to somebody who answers, with a certificate that it trusts."""
    if (absent := not_installed(facts)) is not None:
        return absent
    if isinstance(facts.deployments, Unknown):
        return unchecked(facts.deployments)
    if not facts.webhook and facts.slo is not None:
        again = f"{CHART} -n {facts.namespace} --set slo.enabled=true"
        return problem(f"Deployment {WEBHOOK} is not there: {UNCHECKED}", again)
    if not facts.webhook:
        return ok("switched off (profiles.enabled=false)")
    for known in (facts.webhook_endpoints, facts.webhook_configuration, facts.webhook_certificate):
        if isinstance(known, Unknown):
            return unchecked(known)
    return _trusted(facts) or _reached(facts)


def _trusted(facts: ClusterFacts) -> Finding | None:
    """What keeps the API server from believing the webhook."""
    lost = _lost(facts)
    if facts.webhook_configuration is None:
        kind, key = ("Mutating", "profiles") if facts.profiles else ("Validating", "slo")
        again = f"{CHART} -n {facts.namespace} --set {key}.enabled=true"
        return problem(f"{kind}WebhookConfiguration {WEBHOOK_CONFIGURATION} is not there: {lost}", again)
    signed_by = _text((_mapping(facts.webhook_certificate).get("data") or {}).get("ca.crt")).partition(END)[0]
    if not signed_by:
        why = f"Secret {WEBHOOK_SECRET} holds no certificate, and nobody makes one: {lost}"
        return problem(why, _logs(facts))
    hooks = _mapping(facts.webhook_configuration).get("webhooks") or []
    bundles = [_text((hook.get("clientConfig") or {}).get("caBundle")) for hook in hooks]
    if bundles and all(signed_by in bundle for bundle in bundles):
        return None
    return problem(
        f"{WEBHOOK_CONFIGURATION} does not trust the authority of Secret {WEBHOOK_SECRET}: {lost}",
        f"look who else writes its caBundle; the leader writes it within half a minute: {_logs(facts)}",
    )


def _reached(facts: ClusterFacts) -> Finding:
    """Whether the API server gets answers."""
    ready = _ready(facts.webhook_endpoints)
    if not ready:
        return problem(f"Service {WEBHOOK} has no endpoint that is ready: {_lost(facts)}", _logs(facts))
    if not facts.profiles:
        return ok(f"{ready} of {WEBHOOK} are ready, for Koordinator's ConfigMap alone (profiles.enabled=false)")
    if isinstance(facts.webhook_answers, Unknown):
        return unchecked(facts.webhook_answers, "ask as somebody who may create pods in the namespace default")
    if not facts.webhook_answers:
        return problem(
            f"a pod that was created as a dry run came back without an answer of {WEBHOOK}: {UNCHANGED}",
            f"let the API server reach port 8443 of its pods, through firewalls and network policies; {_logs(facts)}",
        )
    return ok(f"{ready} of {WEBHOOK} are ready, and the API server gets their answers")


def _lost(facts: ClusterFacts) -> str:
    """What becomes of what the webhook would answer for."""
    return UNCHANGED if facts.profiles else UNCHECKED


def _logs(facts: ClusterFacts) -> str:
    return f"kubectl -n {facts.namespace} logs deployment/{WEBHOOK}"


def _ready(slices: Any) -> int:
    endpoints = [endpoint for one in slices for endpoint in one.get("endpoints") or ()]
    # Not said is ready, by the definition of the kind.
    return sum((endpoint.get("conditions") or {}).get("ready") is not False for endpoint in endpoints)


def _mapping(given: Any) -> Document:
    return given if isinstance(given, dict) else {}


def _text(given: object) -> str:
    """What base64 says; empty where it is none."""
    try:
        return base64.b64decode(str(given or ""), validate=True).decode()
    except (binascii.Error, ValueError):
        return ""
