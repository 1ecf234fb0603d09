"""`python -m kube_rig`: install the tools where that is allowed, build the programs, make the images."""

import sys

from rig.packages import RigMissing

from kube_rig.cluster import CLUSTER
from kube_rig.images import prepare_images
from kube_rig.programs import build_programs


def say(line: str) -> None:
    """One line for whoever waits."""
    print(f"Kubernetes: {line}", flush=True)


try:
    CLUSTER.install_tools(say)
    with CLUSTER.cache_held() as cache:
        build_programs(cache, say)
        prepare_images(cache, say)
except RigMissing as error:
    sys.exit(f"Kubernetes: {error}")
say(f"ready in {cache}")
