"""`python -m compose_rig`: install the tools where that is allowed, build compose, make the base image."""

import sys
from concurrent.futures import ThreadPoolExecutor

from rig.packages import RigMissing

from compose_rig.engine import base_image, running
from compose_rig.parts import ENGINE, build_compose


def say(line: str) -> None:
    """One line for whoever waits."""
    print(f"container engine: {line}", flush=True)


try:
    ENGINE.install_tools(say)
    with ENGINE.cache_held() as cache, ThreadPoolExecutor() as pool:
        compose = pool.submit(build_compose, cache, say)  # takes the CPUs; the image waits for the network
        with running(cache) as engine:
            image = base_image(engine, cache, say)
        compose.result()
except RigMissing as error:
    sys.exit(f"container engine: {error}")
say(f"ready in {cache}, base image {image}")
