"""Sizes the pools besides the shared one: named pools, pools on a NUMA node, or pools set apart for one pod.

Such a pool takes CPUs from all other pods. All of them together therefore never have more than their pods request,
whatever is advised, and the shared pool keeps what its pods request. A pool whose pods request less than one CPU is not
created, and its pods run in the shared pool: a hundred of such pools would take a hundred CPUs.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from services.qrm.core.placement.dedicated import whole_cpus
from services.qrm.core.placement.proportion import fit
from services.qrm.core.placement.requests import CpuRequest

PoolKey = tuple[str, tuple[int, ...]]
"""The pool's name, and the NUMA node that it is on."""


@dataclass(frozen=True, slots=True)
class PoolRoom:
    """Free CPUs on each NUMA node and in all, and how many of them stay for the other pools in any case."""

    of_numa: Mapping[tuple[int, ...], int]
    free: int
    keep: int


@dataclass(slots=True)
class OwnPoolSizes:
    """CPUs by pool, and why the pods of the others (namespace/name) have none."""

    cpus: dict[PoolKey, int] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)


def size_pools(
    pools: Mapping[PoolKey, Sequence[CpuRequest]], room: PoolRoom, held: Mapping[PoolKey, bool], shared_cores: float
) -> OwnPoolSizes:
    """Give every eligible pool its size.

    If there are fewer CPUs than pools, pools that have some already come first, then the names decide.

    Args:
        pools: their pods' requests, in the sizes that are advised.
        room: what there is.
        held: which of them have CPUs already.
        shared_cores: what the pods of the shared pool request.
    """
    asked = {key: sum(member.asked for member in members) for key, members in pools.items()}
    found = OwnPoolSizes()
    # Sums of thousandths are not exact: three times a third is one CPU, and not a little less.
    for key in [key for key in pools if asked[key] < 1 - 1e-9]:
        _leave_out(found, pools[key], f"pool {key[0]!r} is asked {asked[key]:g} CPUs for, want at least 1")
        shared_cores += asked.pop(key)
    while True:  # a pool that is left out leaves its pods to the shared pool, which may crowd out the next one
        most = _apportioned(asked)
        # Advice may make such a pool smaller than what its pods ask for, and never larger.
        wanted = {key: max(1, min(most[key], _advised(pools[key]))) for key in asked}
        found.cpus, crowded_out = _fitted(wanted, room, held, max(room.keep, whole_cpus(shared_cores)))
        if not crowded_out:
            return found
        for key, why in crowded_out.items():
            _leave_out(found, pools[key], why)
            shared_cores += asked.pop(key)


def _advised(members: Sequence[CpuRequest]) -> int:
    return whole_cpus(sum(member.request_cores for member in members))


def _apportioned(asked: Mapping[PoolKey, float]) -> dict[PoolKey, int]:
    """Whole CPUs whose sum is the sum of what is asked: the largest remainders are rounded up."""
    sizes = {key: math.floor(cores + 1e-9) for key, cores in asked.items()}
    left = whole_cpus(sum(asked.values())) - sum(sizes.values())
    for key in sorted(asked, key=lambda key: (sizes[key] - asked[key], key))[: max(0, left)]:
        sizes[key] += 1
    return sizes


def _fitted(
    wanted: Mapping[PoolKey, int], room: PoolRoom, held: Mapping[PoolKey, bool], keep: int
) -> tuple[dict[PoolKey, int], dict[PoolKey, str]]:
    """The sizes that fit into what is free, and why some pools get no CPU at all."""
    sizes: dict[PoolKey, int] = {}
    crowded_out: dict[PoolKey, str] = {}
    for numas in sorted({numas for _, numas in wanted}, key=lambda numas: (not numas, numas)):
        # CPUs of pools on other NUMA nodes are also gone for the machine as a whole.
        left = room.free - sum(sizes.values())
        have = max(0, min(room.of_numa[numas] if numas else left, left - keep))
        order = sorted((key for key in wanted if key[1] == numas), key=lambda key: (not held[key], key))
        words = f"one of {len(order)} pools, {have} CPUs can be given beside the {keep} that stay for the shared pool"
        crowded_out |= dict.fromkeys(order[have:], words)
        fits = fit({key[0]: wanted[key] for key in order[:have]}, have)
        sizes |= {(name, numas): size for name, size in fits.items()}
    return sizes, crowded_out


def _leave_out(found: OwnPoolSizes, members: Sequence[CpuRequest], why: str) -> None:
    found.problems |= {member.key: f"{why}: its pods run in the shared pool" for member in members}
