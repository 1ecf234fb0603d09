"""The condition in a profile's status: whether it works, and why it matches nothing where it does not."""

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

from services.central.core.profiles.profile_documents import ProfileSeen

VALID = "Valid"
MOST_MESSAGE = 1024

Condition = Mapping[str, Any]


def conditions_due(seen: ProfileSeen, priority_classes: Collection[str], now: datetime) -> list[Condition] | None:
    """Return the conditions that the status should have; None if it has them. Those of others stay."""
    wanted = _verdict(seen, priority_classes)
    there = next((one for one in seen.conditions if one.get("type") == VALID), {})
    if all(there.get(name) == value for name, value in wanted.items()):
        return None
    same = there.get("status") == wanted["status"] and isinstance(there.get("lastTransitionTime"), str)
    since = there["lastTransitionTime"] if same else now.strftime("%Y-%m-%dT%H:%M:%SZ")
    others = [one for one in seen.conditions if one.get("type") != VALID]
    return [*others, {**wanted, "lastTransitionTime": since}]


def _verdict(seen: ProfileSeen, priority_classes: Collection[str]) -> Condition:
    head = {"type": VALID, "observedGeneration": seen.generation}
    if seen.profile is None:
        message = f"{seen.problem}; until it is mended the profile matches no pod"
        return head | {"status": "False", "reason": "Unreadable", "message": message[:MOST_MESSAGE]}
    name = seen.profile.changes.priority_class_name
    if name and name not in priority_classes:
        message = f"priorityClassName {name!r}: the cluster has no such PriorityClass; until then no pod is changed"
        return head | {"status": "False", "reason": "PriorityClassMissing", "message": message[:MOST_MESSAGE]}
    return head | {"status": "True", "reason": "Read", "message": ""}
