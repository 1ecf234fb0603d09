"""Three real nodes as a fixture, for the modules that need more than the cluster's first one."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from kube_rig.cluster import Cluster
    from many_nodes import ManyNodes

KEPT = Path(__file__).parents[2] / "out/kubernetes"
HASTE = {
    "settings": {
        "reporter": {"rise_window_s": 5, "refresh_s": 5},
        "advisor": {"policy_budget_ms": 5000},  # three agents share this machine's CPUs, and others use them, too
    }
}


@pytest.fixture(scope="module")
def world(cluster: "Cluster", product: str, request: pytest.FixtureRequest) -> "Iterator[ManyNodes]":
    """Sublet on three nodes; on each a busy tenant and two batch pods."""
    from kube_rig.cluster import CLUSTER
    from kube_rig.images import kept_image
    from kube_rig.product import Product
    from many_nodes import ManyNodes
    from more_nodes import joined

    with joined(cluster, kept_image(CLUSTER.cache_folder(), product)) as more:
        here = ManyNodes(Product(cluster), (cluster.node, *more))
        here.sublet.install(HASTE)
        here.fill(cluster.images.stress.name)
        yield here
        KEPT.mkdir(parents=True, exist_ok=True)
        (KEPT / f"{request.path.stem.removeprefix('test_')}.txt").write_text("\n".join(here.sublet.transcript))
        here.empty()
        here.sublet.uninstall()
        here.sublet.leave()
