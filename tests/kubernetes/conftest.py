"""Fixtures of several modules: a cluster that has the kinds; three real nodes for what needs more than one."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from slow_machines import patience_s

if TYPE_CHECKING:
    from kube_rig.cluster import Cluster
    from many_nodes import ManyNodes

CRDS = Path(__file__).parents[2] / "deploy/k8s/crds"
KEPT = Path(__file__).parents[2] / "out/kubernetes"
HASTE = {
    "settings": {
        "reporter": {"rise_window_s": 5, "refresh_s": 5},
        "advisor": {"policy_budget_ms": 5000},  # three agents share this machine's CPUs, and others use them, too
    }
}


@pytest.fixture(scope="module")
def kinds(cluster: "Cluster") -> "Iterator[Cluster]":
    """A cluster that has the kinds; where somebody has installed them before, they stay."""
    there = bool(cluster.get("crd")["items"])
    # As docs/kubernetes.md has it for an upgrade: kinds that Helm made are Helm's.
    cluster.kubectl("apply", "--server-side", "--force-conflicts", "--kustomize", str(CRDS))
    cluster.kubectl("wait", "crd", "--for=condition=Established", f"--timeout={patience_s(60):.0f}s", "--all")
    yield cluster
    if not there:
        cluster.kubectl("delete", "--kustomize", str(CRDS))


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
