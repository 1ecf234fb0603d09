"""Checks of a cluster: what protects the bus, its passwords and its certificate. Pure."""

import base64
import binascii
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from sublet.doctor.cluster.api import not_installed
from sublet.doctor.cluster.facts import ClusterFacts
from sublet.doctor.finding import Finding, Unknown, ok, problem, unchecked, warning

KNOWN = frozenset({"demo-central", "demo-leaf", "demo-bridge", "demo-routes", "local-only", "team-only"})
"""Passwords that stand, or stood, in this project's own files."""
LEAST_LETTERS = 16
RENEW_AT = "sublet.io/renew-at"
ROTATE = "helm upgrade with another bus.rotation, or: sh deploy/k8s/secrets.sh rotate | kubectl apply -f -"
RENEW = "helm upgrade makes the next one, or: sh deploy/k8s/secrets.sh renew | kubectl apply -f -"


def passwords(facts: ClusterFacts) -> Finding:
    """Whether nobody else knows the passwords of the bus, nor guesses them."""
    held = _secret(facts, facts.bus_passwords)
    if isinstance(held, Finding):
        return held
    weak = sorted(key for key, text in (held.get("data") or {}).items() if _weak(text))
    if weak:
        return problem(f"everybody knows, or may guess, the bus' password of {', '.join(weak)}", ROTATE)
    return ok(f"{len(held.get('data') or {})} passwords, none of them known or short")


def certificate(facts: ClusterFacts) -> Finding:
    """Whether the bus is encrypted, and its certificate not about to end."""
    if facts.bus_certificate is None and not_installed(facts) is None:
        return warning("passwords and tokens of the bus cross the network in the clear", "set bus.tls=true")
    held = _secret(facts, facts.bus_certificate)
    if isinstance(held, Finding):
        return held
    at = str((held["metadata"].get("annotations") or {}).get(RENEW_AT) or "")
    if not at.isdecimal():
        return ok("encrypted; whoever made its certificate renews it")
    # Bounded, for an annotation may hold any number, and `datetime` ends with the year 9999.
    renew_at = datetime.fromtimestamp(min(int(at), 1 << 34), UTC)
    if facts.now >= renew_at:
        return warning(f"the bus' certificate is to be renewed since {renew_at:%Y-%m-%d}", RENEW)
    return ok(f"encrypted, the certificate is good beyond {renew_at:%Y-%m-%d}")


def _secret(facts: ClusterFacts, held: Any) -> Mapping[str, Any] | Finding:
    if (absent := not_installed(facts)) is not None:
        return absent
    if isinstance(held, Unknown):
        return unchecked(held)
    if held is None:
        return problem("a Secret of the bus is not there", "sh deploy/k8s/secrets.sh | kubectl apply -f -")
    return dict(held)


def _weak(text: str) -> bool:
    try:
        word = base64.b64decode(text, validate=True).decode()
    except (binascii.Error, ValueError):
        return True
    return word in KNOWN or len(word) < LEAST_LETTERS
