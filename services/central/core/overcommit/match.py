"""Which config rules which node (docs/facts/katalyst-overcommit.md#which-config)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PoolClaim:
    """A config by the label value that it claims; an empty one claims no node."""

    name: str
    pool: str
    created_s: float


def winners(claims: Iterable[PoolClaim]) -> dict[str, PoolClaim]:
    """By pool the newest claim; of equally old ones the first by name."""
    found: dict[str, PoolClaim] = {}
    for claim in sorted(claims, key=lambda one: (-one.created_s, one.name)):
        if claim.pool:
            found.setdefault(claim.pool, claim)
    return found


def ruled(claims: Iterable[PoolClaim], pools: Mapping[str, str | None]) -> dict[str, str | None]:
    """By node the config that rules it, or None; `pools` is each node's label value."""
    found = winners(claims)
    return {node: found[pool].name if pool and pool in found else None for node, pool in pools.items()}


def matched(claims: Iterable[PoolClaim], rulers: Mapping[str, str | None]) -> dict[str, list[str]]:
    """By config the nodes that it rules, ascending; one that lost its pool to another rules none."""
    found: dict[str, list[str]] = {claim.name: [] for claim in claims}
    for node, name in sorted(rulers.items()):
        if name is not None:
            found[name].append(node)
    return found
