"""Reads which of Koordinator's eviction policies a pod allows (docs/facts/koordinator-evict.md#what-a-pod-says)."""

from collections.abc import Mapping

from shared.core.pods.koord_qos import KOORD_DOMAIN
from shared.core.text.annotation_values import json_names
from shared.errors import Refused

EVICTION_POLICY = f"{KOORD_DOMAIN}eviction-policy"


def allows_policy(policy: str, annotations: Mapping[str, str]) -> bool:
    """Whether a pod says nothing, or names the policy exactly in a JSON list of names; other text allows none."""
    said = annotations.get(EVICTION_POLICY)
    if said is None:
        return True
    try:
        return policy in json_names(said)
    except Refused:
        return False
