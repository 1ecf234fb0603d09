"""The first success that each page on the cluster's half promises, typed as it is printed, page by page.

Of a page all `sh` blocks of its first section run, in a shell that has kubectl, helm and kubectl's plugin; names of
nodes and of an image are this cluster's. What was typed and said, and how long each took, is kept in
`out/kubernetes/first-success.txt`.
"""

import asyncio
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from kube_rig.cluster import CLUSTER, Cluster
from kube_rig.images import scheduler_image
from kube_rig.node import NODE
from kube_rig.product import Product
from paper_node import PaperNode
from rig_parts import until
from slow_machines import patience_s

from services.central.core.tide.marks import TYPE_LABEL
from shared.adapters.kube.client import Kube
from shared.contracts.kube.quantities import parse_millis

pytestmark = [pytest.mark.pages, pytest.mark.timeout(900)]

ROOT = Path(__file__).parents[2]
KEPT = ROOT / "out/kubernetes/first-success.txt"
SECTION = re.compile(r"^## (?:First success in|In) five minutes\n(.*?)(?=^## )", re.MULTILINE | re.DOTALL)
BLOCK = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)
UPGRADE = re.compile(r"(?:^kubectl apply .* deploy/k8s/crds.*\n)?^helm upgrade (?:.*\\\n)*.*\n", re.MULTILINE)
PAPER = tuple(f"green-{number}" for number in range(1, 5))
LIMIT_S = 420.0
"""A page promises five minutes; what a crowded machine needs more is no failure."""
SETTINGS = {
    "scheduler": {"enabled": True},
    "settings": {
        # The only node of this cluster has tests' pods on it; what they use is not looked at.
        "reporter": {"overcommit": {"window_s": 20}},
    },
}
BUSY = "trap exit TERM; (while :; do :; done) & wait"

Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Reader:
    """Somebody with a terminal who does what a page says."""

    cluster: Cluster
    folder: Path
    """With the programs that he has on his path."""
    said: list[str]

    def _keep(self, text: str) -> None:
        self.said.append(text)
        KEPT.parent.mkdir(parents=True, exist_ok=True)
        KEPT.write_text("\n".join(self.said))

    def follow(
        self,
        page: str,
        renamed: Mapping[str, str],
        success: Callable[[], bool],
        *,
        prepare: Callable[[], object] = lambda: None,
    ) -> None:
        """Type what the page prints, and wait for what it promises; what it expects is prepared once helm is done."""
        section = SECTION.search((ROOT / "docs" / page).read_text())
        assert section is not None, f"{page} has no first success"
        typed = "".join(BLOCK.findall(section[1]))
        for old, new in renamed.items():
            assert old in typed, f"{page} does not say {old}"
            typed = typed.replace(old, new)
        upgraded = UPGRADE.match(typed)
        assert upgraded is not None, f"{page} does not begin with helm"
        began_s = time.monotonic()
        self._keep(f"=== {page}")
        self._type(upgraded[0])
        prepare()
        self._type(typed[upgraded.end() :])
        until(success, LIMIT_S, f"what {page} promises")
        self._keep(f"--- success after {time.monotonic() - began_s:.0f} s\n")

    def _type(self, text: str) -> None:
        words = ["bash", "-euo", "pipefail", "-xc", text]
        done = subprocess.run(words, cwd=ROOT, env=self._environment, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=LIMIT_S, check=False)  # fmt: skip
        self._keep(f"{text}\n--- said:\n{done.stdout}")
        assert done.returncode == 0, done.stdout

    @property
    def _environment(self) -> dict[str, str]:
        home = str(self.folder)
        return {"PATH": f"{self.folder}:/usr/bin:/bin", "KUBECONFIG": str(self.cluster.admin), "HOME": home,
                "PYTHONPATH": str(ROOT), "NO_PROXY": "*", "LC_ALL": "C.UTF-8"}  # fmt: skip


@pytest.fixture(scope="module")
def sublet(cluster: Cluster, product: str) -> Iterator[Product]:
    """Installed as by default, with a Deployment `web` that works."""
    cluster.node.load(scheduler_image(CLUSTER.cache_folder(), cluster.programs["kube-scheduler"], print).archive)
    installed = Product(cluster)
    installed.install(SETTINGS)
    cluster.apply(web(cluster.images.base.name))
    cluster.kubectl("rollout", "status", "deployment/web", f"--timeout={patience_s(60):.0f}s")
    yield installed
    cluster.kubectl("delete", "deployment/web", "pod/batch", "hpa/web", "--ignore-not-found", "--now")
    installed.uninstall()
    installed.leave()


@pytest.fixture(scope="module")
def reader(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Reader:
    """With a path of his own."""
    folder = tmp_path_factory.mktemp("path")
    for name in ("kubectl", "helm"):
        (folder / name).symlink_to(cluster.programs[name])
    plugin = folder / "kubectl-sublet"
    plugin.write_text(f"#!{sys.executable}\nfrom sublet.cli import main\nmain()\n")
    plugin.chmod(0o755)
    return Reader(cluster, folder, [])


@contextmanager
def paper_nodes(cluster: Cluster) -> Iterator[None]:
    """Nodes without machines for as long as the block lasts; a thread of their own renews their leases."""
    ended = threading.Event()

    async def live() -> None:
        kube = Kube(cluster.admin)
        nodes = [PaperNode(kube, name, "first-success", {"cpu": "4", "memory": "8Gi", "pods": "110"}) for name in PAPER]
        try:
            for node in nodes:
                await node.register()
            breaths = [asyncio.create_task(node.breathe()) for node in nodes]
            await asyncio.to_thread(ended.wait)
            for breath in breaths:
                breath.cancel()
        finally:
            for node in nodes:
                await node.remove()
            await kube.close()

    thread = threading.Thread(target=lambda: asyncio.run(live()))
    thread.start()
    try:
        until(lambda: len(cluster.get("nodes")["items"]) > len(PAPER), LIMIT_S, "nodes on paper")
        yield
    finally:
        ended.set()
        thread.join()


def web(image: str) -> Document:
    container = {"name": "web", "image": image, "imagePullPolicy": "Never", "command": ["sh", "-c", BUSY],
                 "resources": {"requests": {"cpu": "50m", "memory": "32Mi"},
                               "limits": {"cpu": "100m", "memory": "64Mi"}}}  # fmt: skip
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"terminationGracePeriodSeconds": 1, "containers": [container]}}
    spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}


def test_scheduling(sublet: Product, cluster: Cluster, reader: Reader) -> None:
    image = cluster.images.base.name
    reader.follow(
        "scheduling.md",
        {"busybox": image, '"command"': '"imagePullPolicy": "Never", "command"'},
        lambda: cluster.get("pod", "batch")["status"].get("phase") == "Running",
    )
    assert NODE in reader.said[-2], "the explanation names the node"


def test_custom_metrics(sublet: Product, cluster: Cluster, reader: Reader) -> None:
    def scaled() -> bool:
        conditions = cluster.get("hpa", "web")["status"].get("conditions", [])
        return any((one["type"], one["status"]) == ("ScalingActive", "True") for one in conditions)

    reader.follow("custom-metrics.md", {}, scaled)
    cluster.kubectl("delete", "hpa", "web")


def test_recommendation(sublet: Product, cluster: Cluster, reader: Reader) -> None:
    def recommended() -> bool:
        return "Recommended" in cluster.kubectl("get", "rec", "web")

    reader.follow("recommendation.md", {"min_history_s=300": "min_history_s=60", " --watch": ""}, recommended)


def test_service_profiles(sublet: Product, cluster: Cluster, reader: Reader) -> None:
    def filled() -> bool:
        return bool(cluster.get("spd", "web").get("status", {}).get("aggMetrics"))

    reader.follow("service-profiles.md", {}, filled)
    assert "Valid" in cluster.kubectl("get", "kvpa", "web", "--output", "yaml")


def test_clock_bounds(sublet: Product, cluster: Cluster, reader: Reader) -> None:
    def bounded() -> bool:
        found = cluster.get("hpa", "web")
        return "sublet.io/replica-schedule-status" in found["metadata"]["annotations"]

    reader.follow("clock-bounds.md", {}, bounded)
    said = cluster.get("hpa", "web")
    assert (said["spec"]["minReplicas"], said["spec"]["maxReplicas"]) in ((10, 50), (2, 10))


def test_overcommit(sublet: Product, cluster: Cluster, reader: Reader) -> None:
    own = parse_millis(cluster.get("node", NODE)["status"]["allocatable"]["cpu"])

    def shown() -> bool:
        return parse_millis(cluster.get("node", NODE)["status"]["allocatable"]["cpu"]) != own

    reader.follow("overcommit.md", {"worker-1": NODE}, shown)
    cluster.kubectl("delete", "noc", "spare")
    cluster.kubectl("label", "node", NODE, "katalyst.kubewharf.io/overcommit_node_pool-")


def test_tide(sublet: Product, cluster: Cluster, reader: Reader) -> None:
    def given() -> bool:
        nodes = cluster.get("nodes", "--selector", f"pool=green,{TYPE_LABEL}=offline")
        return bool(nodes["items"])

    with ExitStack() as nodes:
        renamed = {f"worker-{number}": name for number, name in enumerate(PAPER, start=1)}

        def paper() -> None:
            # Pods of Sublet tolerate everything: all of them run before there are nodes without a kubelet.
            sublet.wait_ready()
            nodes.enter_context(paper_nodes(cluster))

        reader.follow("tide.md", renamed, given, prepare=paper)
        cluster.kubectl("delete", "tidenodepool", "green")
