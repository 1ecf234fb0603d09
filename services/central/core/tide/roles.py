"""Roles of a pool's nodes: reserves stay on their side, tide nodes change it (docs/facts/katalyst-tide.md#roles)."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from shared.errors import Refused

Role = Literal["online_reserve", "offline_reserve", "tide_online", "tide_offline"]
Standing = Role | Literal["other"] | None
"""Of a node that a pool selects: its role, `other` with another pool's mark, None without any."""
Amount = int | str | None
"""Of nodes: a number, or a percentage of them as text; None: none."""

ONLINE: frozenset[Standing] = frozenset({"online_reserve", "tide_online"})
OFFLINE: frozenset[Standing] = frozenset({"offline_reserve", "tide_offline"})
MOST_NODES = 1_000_000
_PERCENT = re.compile(r"([0-9]{1,3})%")


def count_of(amount: Amount, nodes: int, *, up: bool) -> int:
    """Return how many of so many nodes an amount is; a percentage is rounded `up` or down.

    Raises:
        Refused: `invalid_reserve`, with its value and what is expected.
    """
    if amount is None:
        return 0
    if isinstance(amount, int) and 0 <= amount <= MOST_NODES:
        return amount
    found = _PERCENT.fullmatch(amount) if isinstance(amount, str) else None
    if found is None or int(found[1]) > 100:
        said = amount[:20] if isinstance(amount, str) else amount
        raise Refused(
            f"reserve {said!r}: want a number from 0 to {MOST_NODES}, or a percentage from 0% to 100%",
            reason="invalid_reserve",
        )
    part = int(found[1]) * nodes
    return -(-part // 100) if up else part // 100


@dataclass(frozen=True, slots=True)
class Reserves:
    """How many nodes always stay on each side."""

    online: int
    offline: int

    @classmethod
    def of(cls, online: Amount, offline: Amount, nodes: int) -> "Reserves":
        """Of so many nodes; percentages for services are rounded up, for batch work down.

        Raises:
            Refused: `invalid_reserve`, with the side.
        """
        counts = []
        for side, amount, up in (("online", online, True), ("offline", offline, False)):
            try:
                counts.append(count_of(amount, nodes, up=up))
            except Refused as refusal:
                raise Refused(f"{side} {refusal}", reason=refusal.reason) from None
        return cls(*counts)


@dataclass(frozen=True, slots=True)
class RoleChange:
    """A node gets a role."""

    node: str
    role: Role


def role_changes(nodes: Mapping[str, Standing], reserves: Reserves, *, grow: bool = True) -> list[RoleChange]:
    """Return the changes that bring the reserves to their counts, in order; none of them changes sides.

    `grow`: a missing reserve is also taken from tide nodes of its side; otherwise only from new nodes.
    """
    changes = [*_surplus(nodes, reserves), *_newcomers(nodes, reserves)]
    if not grow:
        return changes
    changed = {change.node for change in changes}
    after = {**nodes, **{change.node: change.role for change in changes}}
    growing: tuple[tuple[Role, Role, int], ...] = (
        ("online_reserve", "tide_online", reserves.online),
        ("offline_reserve", "tide_offline", reserves.offline),
    )
    for reserve, tide, wanted in growing:
        spare = [name for name in _of_role(after, tide) if name not in changed]
        lacking = max(0, wanted - len(_of_role(after, reserve)))
        changes += [RoleChange(name, reserve) for name in spare[:lacking]]
    return changes


def _surplus(nodes: Mapping[str, Standing], reserves: Reserves) -> Iterator[RoleChange]:
    """Return surplus reserve nodes, first by name, so that the same nodes stay in every pass."""
    online, offline = _of_role(nodes, "online_reserve"), _of_role(nodes, "offline_reserve")
    for name in online[: max(0, len(online) - reserves.online)]:
        yield RoleChange(name, "tide_online")
    for name in offline[: max(0, len(offline) - reserves.offline)]:
        yield RoleChange(name, "tide_offline")


def _newcomers(nodes: Mapping[str, Standing], reserves: Reserves) -> Iterator[RoleChange]:
    online, offline = len(_of_role(nodes, "online_reserve")), len(_of_role(nodes, "offline_reserve"))
    for name in sorted(name for name, standing in nodes.items() if standing is None):
        if online < reserves.online:
            online += 1
            yield RoleChange(name, "online_reserve")
        elif offline < reserves.offline:
            offline += 1
            yield RoleChange(name, "offline_reserve")
        else:
            yield RoleChange(name, "tide_online")


def _of_role(nodes: Mapping[str, Standing], role: Role) -> list[str]:
    return sorted(name for name, standing in nodes.items() if standing == role)
