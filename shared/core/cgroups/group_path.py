"""The name of a cgroup: its path relative to the cgroup root, in parts that cannot leave it. Pure."""

import re
from functools import lru_cache

from shared.errors import Refused

# No leading dot, so that ".." is no component.
_COMPONENT = re.compile(r"^[a-zA-Z0-9_][-a-zA-Z0-9_.:@]{0,254}\Z")


@lru_cache(maxsize=4096)
def group_parts(group: str) -> tuple[str, ...]:
    """The components of a cgroup's name; none of the root's.

    Raises:
        Refused: one of them is not allowed.
    """
    parts = tuple(part for part in group.split("/") if part)
    for part in parts:
        if not is_component(part):
            raise Refused(f"cgroup {group!r}: component {part!r} is not allowed", reason="bad_path")
    return parts


@lru_cache(maxsize=4096)
def is_component(part: str) -> bool:
    """Whether a cgroup may have this name below another one."""
    return _COMPONENT.match(part) is not None


def holds(group: str, other: str) -> bool:
    """Whether a cgroup is another one, or stands above it; the root ("") stands above all."""
    return not group or other == group or other.startswith(f"{group}/")
