"""`kept_apart` keeps other groups off the CPUs of reclaimed work that could not be put behind tenants, because the
kernel refused it."""

from collections.abc import Collection, Mapping
from dataclasses import replace

from services.qrm.core.writes.plan import Sets, WantedSets
from shared.core.cpus.cpuset import CpuSet


def kept_apart(
    wanted: Mapping[str, WantedSets], tree_now: Mapping[str, Sets], unprotected: Collection[str]
) -> Mapping[str, WantedSets]:
    """Return the wanted sets, without new CPUs for these groups, and without their CPUs for groups that are not on
    them yet.

    A group without any CPU of its wanted set moves there all the same: no set is empty.
    """
    held = {group: _cut(wanted[group], _now(tree_now, group)) for group in unprotected if group in wanted}
    if not held:
        return wanted
    taken = CpuSet.union(one.sets.cpus for one in held.values())
    others = {
        group: _cut(one, one.sets.cpus - (taken - _now(tree_now, group)))
        for group, one in wanted.items()
        # A group without a rank only holds the others.
        if group not in held and one.rank is not None
    }
    return {**wanted, **others, **held}


def _now(tree_now: Mapping[str, Sets], group: str) -> CpuSet:
    return tree_now[group].cpus if group in tree_now else CpuSet()


def _cut(one: WantedSets, to: CpuSet) -> WantedSets:
    cpus = one.sets.cpus & to or one.sets.cpus
    return replace(one, sets=replace(one.sets, cpus=cpus))
