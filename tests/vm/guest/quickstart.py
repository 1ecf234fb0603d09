"""The quick start's CPU walk-through on a real kernel: 44, 42, 40, and back."""

import sys

from listings import PRINTED
from world import World

ONLINE, BATCH = "shared-normal-pod", "reclaimed-normal-pod"
STILL_S = 20.0


def story(world: World) -> None:
    """As the tutorial tells it."""
    both = [BATCH, ONLINE]
    world.settle("idle", 60, **PRINTED["idle"], pods=[])
    world.apply(f"{ONLINE}.yaml")
    world.settle("pod", 60, **PRINTED["pod"], pods=[ONLINE])
    world.apply(f"{BATCH}.yaml")
    world.settle("reclaimed pod", 60, **PRINTED["reclaimed pod"], pods=both)
    world.report["cnr"] = world.says('"42k"', "get", "cnr", "-o", "json")
    world.execute(ONLINE, "stress", "-c", "2")
    world.settle("peak", 120, **PRINTED["peak"], pods=both)
    world.stays("still peak", STILL_S, **PRINTED["still peak"], pods=both)
    world.sublet("delete", *(f"pod/{pod}" for pod in both))
    world.settle("idle again", 180, **PRINTED["idle again"], pods=[])
    world.report["events"] = world.events()  # no command is quick beside the load


if __name__ == "__main__":
    sys.exit(World().tell(story))
