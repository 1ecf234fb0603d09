"""`kubectl apply -k`, as docs/kubernetes.md says, on a real kubelet; and the way back."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from kube_rig.cluster import Cluster
from kube_rig.installation import NAMESPACE
from kube_rig.product import Product
from rig_parts import until
from slow_machines import patience_s

from shared.build import VERSION

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(420)]

K8S = Path(__file__).parents[2] / "deploy/k8s"
DEMO, UNINSTALL, CRDS = (str(K8S / name) for name in ("overlays/demo", "uninstall", "crds"))
IMAGE = f"sublet:{VERSION}"
"""As the manifests name it."""
OFFER_LIMIT_S, JOB_LIMIT = 120.0, f"--timeout={patience_s(120):.0f}s"


@pytest.fixture(scope="module")
def sublet(cluster: Cluster, product: str) -> Iterator[Product]:
    """All of the overlay `demo`; its scheduler's image cannot be had here, the cluster's own has the profile."""
    cluster.node.tag(product, IMAGE)
    cluster.kubectl("delete", "--kustomize", CRDS, "--ignore-not-found", "--wait")
    cluster.wait_gone(f"namespace/{NAMESPACE}")
    secrets = subprocess.run(["sh", K8S / "secrets.sh"], check=True, capture_output=True, text=True).stdout
    cluster.kubectl("apply", "--server-side", "--filename", "-", given=secrets)
    cluster.kubectl("apply", "--server-side", "--kustomize", DEMO)
    installed = Product(cluster)
    installed.wait_ready()
    yield installed
    if NAMESPACE in cluster.kubectl("get", "namespaces"):
        cluster.kubectl("delete", "--kustomize", DEMO, "--ignore-not-found", "--wait")


def test_what_kubectl_installs_offers_what_the_node_does_not_use(sublet: Product) -> None:
    until(lambda: sublet.offer_millis() == 0, OFFER_LIMIT_S, "an offer of nothing, for a first install observes")
    sublet.in_system("set", "env", "daemonset/sublet-node", "deployment/sublet-central", "SUBLET_MODE=enforce")
    sublet.wait_ready()
    until(sublet.offer_millis, OFFER_LIMIT_S, "an offer")
    assert sublet.sold_millis() > 0


def test_what_kubectl_takes_away_leaves_the_cluster_as_it_was(sublet: Product, cluster: Cluster) -> None:
    cluster.kubectl("delete", "--kustomize", DEMO, "--wait")
    cluster.kubectl("apply", "--kustomize", UNINSTALL)
    sublet.in_system("wait", "--for=condition=Complete", "job/sublet-uninstall", JOB_LIMIT)
    cluster.kubectl("delete", "--kustomize", UNINSTALL, "--wait")
    assert sublet.left() == []
