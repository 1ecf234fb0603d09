"""Applications of the host that nodes measure, as Koordinator's ConfigMap lists them.

Facts: docs/facts/koordinator-host-applications.md#what-the-configmap-says.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, get_args

from services.central.core.slo.strategies import ListedApplication
from shared.contracts.pod import PriorityClass
from shared.core.cgroups.group_path import group_parts
from shared.errors import Refused

MOST, MOST_PATH_CHARACTERS = 16, 256
NAME = re.compile(r"^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?\Z")
"""Same bound as in metrics, so that a node's entry fits the bucket."""
LATENCY_SENSITIVE, BEST_EFFORT = "host-latency-sensitive", "host-best-effort"
"""Groups below which an application is looked for that names no cgroup, by its class."""
_DEFAULT_GROUPS = {"LSE": LATENCY_SENSITIVE, "LSR": LATENCY_SENSITIVE, "LS": LATENCY_SENSITIVE, "BE": BEST_EFFORT}


@dataclass(frozen=True, slots=True)
class FollowedApplications:
    """As settings of a node, as the ConfigMap would say the same, and why others are left out."""

    settings: list[dict[str, Any]] = field(default_factory=list)
    said: list[dict[str, Any]] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    """By name, what is wanted."""


def follow_applications(listed: list[Mapping[str, Any]]) -> FollowedApplications:
    """Return those that nodes can be told to measure."""
    found = FollowedApplications()
    for document in listed:
        one = ListedApplication.model_validate(document)
        why = _why_not(one, found)
        if why:
            found.refused[one.name] = why
            continue
        base, path = _place(one)
        classes = {"priority": one.priority or None, "qos": one.qos}
        own = {"name": one.name} | {key: word for key, word in classes.items() if word}
        found.settings.append({**own, "base": base, "path": path})
        found.said.append({**own, "cgroupPath": {"base": base, "relativePath": path}})
    return found


def _why_not(one: ListedApplication, found: FollowedApplications) -> str:
    if len(found.settings) >= MOST:
        return f"want at most {MOST} applications for a node"
    if not NAME.match(one.name) or any(other["name"] == one.name for other in found.settings):
        return "want a name of its own: up to 63 letters, digits, - _ and ., a letter or digit at both ends"
    if one.priority and one.priority not in get_args(PriorityClass):
        return f"priority {one.priority}: want {', '.join(get_args(PriorityClass))} or none"
    try:
        _, path = _place(one)
    except Refused as refusal:
        return f"cgroupPath: {refusal}; want names of cgroups with / between them, without . and .."
    return "" if 0 < len(path) <= MOST_PATH_CHARACTERS else f"cgroupPath: want 1 to {MOST_PATH_CHARACTERS} characters"


def _place(one: ListedApplication) -> tuple[str, str]:
    """Base and path.

    Raises:
        Refused: a part of the path is no name of a cgroup.
    """
    if one.cgroup_path is None:
        return "CgroupRoot", "/".join(group_parts(f"{_DEFAULT_GROUPS.get(one.qos or '', '')}/{one.name}"))
    path = f"{one.cgroup_path.parent_dir or ''}/{one.cgroup_path.relative_path or ''}"
    return one.cgroup_path.base or "CgroupRoot", "/".join(group_parts(path))
