"""`free_room` adds up what nodes offer to reclaimed pods and have not given out."""

from collections import Counter
from collections.abc import Iterable

from services.central.core.scheduling.cluster.cnr_taints import keeping_away
from services.central.core.scheduling.cluster.placement_view import NodeState
from services.central.core.scheduling.reclaimed_fit import RECLAIMED


def free_room(states: Iterable[NodeState]) -> dict[str, int]:
    """Return free amounts by resource, over all nodes that accept reclaimed pods; an unknown node has none.

    A node that was sold beyond its current offer counts as zero, and does not reduce what other nodes have.
    """
    found = Counter[str]()
    for state in states:
        if state.offered is None or keeping_away(state.taints, "reclaimed_cores", ()):
            continue
        left = {name: state.offered.get(name, 0) - state.requested.get(name, 0) for name in RECLAIMED}
        if min(left.values()) >= 0:
            found.update(left)
    return {name: found[name] for name in RECLAIMED}
