"""The quick start's resource over-commit on a real kernel: above five times the offer a pod goes, below ten none does.

The tutorial's order: first the default of five, then ten; at the end five again, so that the quiet under ten is seen to
come from the setting and not from an evictor that has stopped.
"""

import sys
from collections.abc import Mapping

from listings import OFFERED_AT_PEAK, PRINTED
from world import Broken, World

ONLINE = ["shared-large-pod-1", "shared-large-pod-2"]
LARGER = "reclaimed-large-pod-2"
LEFT = sorted(["reclaimed-large-pod-1", *ONLINE])
ALL = sorted([LARGER, *LEFT])
RESOURCES = ("katalyst.kubewharf.io/reclaimed_millicpu", "katalyst.kubewharf.io/reclaimed_memory")
TEN = {"evictor": {"plugins": {"reclaimed_overcommit": {"eviction_threshold": dict.fromkeys(RESOURCES, 10)}}}}
QUIET_S = 45.0


def story(world: World) -> None:
    """Peak hours until 4 CPUs are left to sublet; then the same requests under each threshold."""
    world.settle("idle", 60, **PRINTED["idle"])
    world.apply("shared-large-pods.yaml", "reclaimed-large-pod-1.yaml", "reclaimed-large-pod-2.yaml")
    world.settle("pods", 60, pods=ALL)
    world.report["before"] = world.events()
    world.execute("shared-large-pod-2", "stress", "-c", "40")
    world.settle("evicted above five", 300, pods=LEFT)
    world.settle("full load", 240, millicpu=OFFERED_AT_PEAK, pods=LEFT)
    world.report["above five"] = world.events()

    configure(world, TEN)
    world.apply("reclaimed-large-pod-2.yaml")
    world.settle("larger pod again", 60, millicpu=OFFERED_AT_PEAK, pods=ALL)
    world.stays("below ten", QUIET_S, millicpu=OFFERED_AT_PEAK, pods=ALL)
    world.report["below ten"] = world.events()

    configure(world, {})
    world.settle("evicted above five again", QUIET_S, millicpu=OFFERED_AT_PEAK, pods=LEFT)
    world.report["above five again"] = world.events()


def configure(world: World, sections: Mapping[str, object]) -> None:
    """Hand a configuration to all services, and wait until the command says that it is in force."""
    world.configure(sections)
    wanted = "eviction_threshold" in str(sections)
    for _ in range(20):
        if ("eviction_threshold" in world.sublet("config", "show")) == wanted:
            return
    raise Broken("central does not publish the configuration")


if __name__ == "__main__":
    sys.exit(World().tell(story))
