"""`region_views` shows a policy each region: its own containers, the usage that is theirs, the size of its pool."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from services.advisor.core.model.containers import once
from services.advisor.core.model.ramp import Ramp
from services.advisor.core.model.region import Region
from services.advisor.core.model.shape import Footprint, Shape
from services.advisor.core.model.view import ContainerView, View, containers_of, waiting_signs
from services.advisor.core.sizing.provision import footprint_alone, footprints_of
from services.advisor.core.sizing.regions import plain, split
from shared.core.cgroups.layout import SHARE
from shared.core.copies import copier

NO_FOOTPRINT = Footprint((), 0.0)
_with_size = copier(View, "size_cpus", "region_reserve_cores")


def region_views(
    view: View, isolated: Collection[str], shape: Shape, ramps: Mapping[str, Ramp]
) -> list[tuple[Region, Footprint, View]]:
    """Return every region with its footprint and its view.

    Each container is in exactly one view. Containers without a region (system_cores and reclaimed_cores, which count in
    the memory) are in the view of the share pool.
    """
    if not isolated and plain(view.containers):
        return [_alone(view, shape, ramps)]
    regions = _without_repetition(split(view.containers, isolated, shape.cpus))
    # Dedicated pods' CPUs are out of the shape already: they keep no other region off their NUMA nodes.
    footprints = footprints_of(shape, [region for region in regions if region.type != "dedicated"])
    elsewhere = [c for region in regions if region.name != SHARE for c in region.containers]
    seen = []
    for region in regions:
        ramp = ramps.get(region.name)
        size, footprint = None if ramp is None else ramp.size, footprints.get(region.name, NO_FOOTPRINT)
        if region.name == SHARE:
            own = _with_size(_rest(view, elsewhere), size, footprint.reserve_cores)
        else:
            own = replace(
                view, containers=region.containers, tenants_usage_cores=None,
                signs=waiting_signs(region.containers), region=region.name, size_cpus=size,
                region_reserve_cores=footprint.reserve_cores,
            )  # fmt: skip
        seen.append((region, footprint, own))
    return seen


@once
def _share_region(containers: Sequence[ContainerView]) -> Region:
    return Region(SHARE, "share", containers=containers_of(containers, ("shared_cores",)))


def _alone(view: View, shape: Shape, ramps: Mapping[str, Ramp]) -> tuple[Region, Footprint, View]:
    """Return the share pool when there is no other region: it stays where it was in the previous round."""
    ramp, footprint = ramps.get(SHARE), footprint_alone(shape)
    own = _with_size(view, None if ramp is None else ramp.size, footprint.reserve_cores)
    return _share_region(view.containers), footprint, own


def _without_repetition(regions: tuple[Region, ...]) -> tuple[Region, ...]:
    """A dedicated pod on several NUMA nodes is judged once: only what it holds of the memory is asked for."""
    judged: dict[tuple[str, str], Region] = {}
    for region in regions:
        key = (region.type, region.pool if region.type == "dedicated" else region.name)
        judged.setdefault(key, region)
    return tuple(judged.values())


def _rest(view: View, elsewhere: list[ContainerView]) -> View:
    """Return the view of the share pool, without the containers of other regions and their share of the use.

    With several pools, the signs of all tenants together say little about one; waiting tasks are known by container.
    """
    if not elsewhere:
        return view
    keys = {(c.uid, c.name) for c in elsewhere}
    usage = view.tenants_usage_cores
    if usage is not None:
        theirs = math.fsum(c.cpu.usage_cores or 0.0 for c in elsewhere if c.qos == "shared_cores")
        # Pool and containers are not read at the same moment: the difference may fall below 0.
        usage = max(0.0, usage - theirs)
    containers = tuple(c for c in view.containers if (c.uid, c.name) not in keys)
    others = math.fsum(c.cpu.usage_cores or 0.0 for c in elsewhere)
    signs = waiting_signs(containers)
    return replace(view, containers=containers, tenants_usage_cores=usage, elsewhere_usage_cores=others, signs=signs)
