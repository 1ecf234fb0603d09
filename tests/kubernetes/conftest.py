"""A cluster of the tests' own: control plane and one node, up once for all tests."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path += [str(Path(__file__).parents[1] / name) for name in ("compose", "vm")]  # their rigs: engine, packages

from kube_rig.cluster import CLUSTER, Cluster, running
from kube_rig.images import build_product
from kube_rig.isolation import Isolation


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """Ready, with nothing in it."""
    CLUSTER.require_tools()
    with CLUSTER.cache_held() as cache:
        with running(cache, print) as cluster:
            yield cluster
        assert Isolation(cache).left() == []


@pytest.fixture(scope="session")
def product(cluster: Cluster) -> str:
    """The name of this checkout's image, which the node has."""
    image = build_product(CLUSTER.cache_folder(), print)
    cluster.node.load(image.archive)
    return image.name
