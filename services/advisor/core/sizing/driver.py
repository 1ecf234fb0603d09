"""`size_regions` drives one round of sizing: who is isolated, what each region needs, and what it gets.

Service and `sublet whatif` size a node with this one driver. They differ in where needs come from: the service asks a
policy, `sublet whatif` reads them from a question.
"""

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from services.advisor.core.model.ramp import RampPace
from services.advisor.core.model.shape import Shape
from services.advisor.core.model.view import ContainerView
from services.advisor.core.sizing.assemble import Assembled
from services.advisor.core.sizing.isolation import ContainerTasks, Isolation, IsolationRules, isolate
from services.advisor.core.sizing.provision import Need, Provision, Regulation, provide

NOBODY_ISOLATED, NOTHING_SIZED = Isolation(), Provision(Assembled({}))
NeedsOf = Callable[[Collection[str]], Sequence[Need]]
"""The needs of all regions when these pods are isolated."""


@dataclass(frozen=True, slots=True)
class SizingInput:
    """A node in one round: its CPUs, its containers, and how sizes may change."""

    shape: Shape
    containers: Sequence[ContainerView]
    pace: RampPace
    isolation: IsolationRules | None = None
    """None: no pod is ever isolated."""
    may_shrink: bool = True
    """As in `Regulation`."""


@dataclass(frozen=True, slots=True)
class SizedRegions:
    """The sizes of one round, and which pods are isolated: what the next round begins with."""

    isolation: Isolation = NOBODY_ISOLATED
    provision: Provision = NOTHING_SIZED


def size_regions(node: SizingInput, needs_of: NeedsOf, before: SizedRegions, now_s: float) -> SizedRegions:
    """The next round, with noisy pods isolated; where that does not fit, without any isolated pod."""
    regulation = Regulation(node.pace, before.provision.ramps, now_s, node.may_shrink)
    isolation = _isolation(node, before.isolation, now_s)
    needs = needs_of(isolation.pods)
    # Tried first with the isolated pods, for only the sizes that result say whether they fit.
    provision = provide(node.shape, needs, regulation)
    if not isolation.pods or _isolation_fits(node.shape, provision, needs):
        return SizedRegions(isolation, provision)
    # Keep the history of the containers: a pod stays noisy even if there is no room for it now.
    return SizedRegions(Isolation(watches=isolation.watches), provide(node.shape, needs_of(()), regulation))


def _isolation(node: SizingInput, before: Isolation, now_s: float) -> Isolation:
    if node.isolation is None:
        return NOBODY_ISOLATED
    tasks = [
        ContainerTasks(c.pod, c.name, c.pool, max(c.limit_cores, c.request_cores), c.runnable)
        for c in node.containers
        if c.qos == "shared_cores" and c.pool
    ]
    return isolate(node.isolation, tasks, before, now_s)


def _isolation_fits(shape: Shape, provision: Provision, needs: Sequence[Need]) -> bool:
    """Whether the share pools and the limits of the isolated pods fit on the CPUs that are not bound to a NUMA node."""
    bound = {need.region.numa for need in needs if shape.keeps_off(need.region)}
    room = sum(cpus for numa, cpus in shape.cpus.items() if numa not in bound)
    free = [need.region for need in needs if not shape.keeps_off(need.region)]
    share = sum(provision.regulated[region.name].ramp.size for region in free if region.type == "share")
    return share + sum(math.floor(region.limit_cores) for region in free if region.type == "isolation") <= room
