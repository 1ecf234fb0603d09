"""Sublet on several nodes: workloads with pods on each, and what the nodes offer beside what is applied there."""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from kube_rig.node import Node
from kube_rig.product import Product
from kube_rig.tutorial import QUICK_START
from offer_watch import OfferWatch
from rig_parts import until

from shared.contracts.kube.node_properties import AGENT_VERSION
from shared.contracts.kube.quantities import parse_units
from shared.contracts.pod import RECLAIMED_CPU, RECLAIMED_MEMORY, TUTORIAL_RECLAIMED_CPU
from shared.core.cpus.cpuset import CpuSet

KCNRS = "/apis/node.katalyst.kubewharf.io/v1alpha1/customnoderesources"
PODS = "/api/v1/namespaces/default/pods"
SPREAD_LIMIT_S, WELL_LIMIT_S, GONE_LIMIT_S, ROLLOUT_LIMIT_S = 90.0, 120.0, 90.0, 300.0
AGENTS = "daemonset/sublet-node"
TENANT, BATCH = "tenant", "batch"
RESOURCES = {
    TENANT: {"cpu": "200m", "memory": "64Mi"},
    BATCH: {RECLAIMED_CPU: "100", RECLAIMED_MEMORY: "64Mi"},
}
LEVELS = {TENANT: "shared_cores", BATCH: "reclaimed_cores"}
COMMANDS = {TENANT: ("stress", "-c", "1"), BATCH: ("sleep", "infinity")}
"""A tenant is as busy as its limit lets it be."""

Document = dict[str, Any]


def workload(name: str, image: str, replicas: int) -> Document:
    """A Deployment whose pods are spread over the nodes that take pods."""
    labels = {"app": name}
    container = {"name": "main", "image": image, "imagePullPolicy": "Never", "command": list(COMMANDS[name]),
                 "resources": {"requests": RESOURCES[name], "limits": RESOURCES[name]}}  # fmt: skip
    spread = {"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "DoNotSchedule",
              "nodeTaintsPolicy": "Honor", "matchLabelKeys": ["pod-template-hash"],
              "labelSelector": {"matchLabels": labels}}  # fmt: skip
    meta = {"labels": labels, "annotations": {"katalyst.kubewharf.io/qos_level": LEVELS[name]}}
    pod = {"schedulerName": "katalyst-scheduler", "terminationGracePeriodSeconds": 1, "containers": [container],
           "topologySpreadConstraints": [spread]}  # fmt: skip
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": meta, "spec": pod},
        },
    }


@dataclass
class ManyNodes:
    """An installation on several nodes."""

    sublet: Product
    nodes: tuple[Node, ...]

    @property
    def names(self) -> set[str]:
        """Of the nodes."""
        return {node.site.name for node in self.nodes}

    def pods(self, app: str = "") -> list[Document]:
        """Those of the users that are not on their way out, or of one workload."""
        _, found = self.sublet.cluster.request("GET", PODS)
        return [
            pod
            for pod in found["items"]
            if "deletionTimestamp" not in pod["metadata"] and app in ("", pod["metadata"]["labels"].get("app"))
        ]

    def standing(self) -> dict[str, tuple[str, int]]:
        """UID and restarts of each of them."""
        return {
            pod["metadata"]["name"]: (pod["metadata"]["uid"], pod["status"]["containerStatuses"][0]["restartCount"])
            for pod in self.pods()
        }

    def places(self, app: str) -> Counter[str]:
        """How many of a workload's pods run on which node."""
        return Counter(pod["spec"]["nodeName"] for pod in self.pods(app) if pod["status"]["phase"] == "Running")

    def fill(self, image: str) -> None:
        """Make the workloads, and wait until all of it runs."""
        self.sublet.cluster.apply(workload(TENANT, image, 3), workload(BATCH, image, 6))
        self.settle()

    def empty(self) -> None:
        """Take the workloads away, and wait for the end of their pods."""
        self.sublet.cluster.kubectl("delete", f"deployment/{TENANT}", f"deployment/{BATCH}")
        until(lambda: not self.pods(), GONE_LIMIT_S, "the end of all pods")

    def settle(self) -> None:
        """Wait until every workload has all its pods, and every node offers.

        Raises:
            TimeoutError: one does not.
        """
        for name in (TENANT, BATCH):
            self.sublet.cluster.kubectl(
                "rollout", "status", f"deployment/{name}", f"--timeout={SPREAD_LIMIT_S * self.sublet.patience:.0f}s"
            )
        until(lambda: self.offering() >= self.names, WELL_LIMIT_S, f"an offer of each of {sorted(self.names)}")

    def spread(self) -> None:
        """Make all pods anew, so that they are on all nodes again, and wait until it is so.

        Raises:
            TimeoutError: it does not become so.
        """
        for name in (TENANT, BATCH):
            self.sublet.cluster.kubectl("rollout", "restart", f"deployment/{name}")
        self.settle()
        for name in (TENANT, BATCH):
            until(partial(self._is_everywhere, name), SPREAD_LIMIT_S, f"{name} on every node")

    def _is_everywhere(self, app: str) -> bool:
        return self.places(app).keys() == self.names

    def offering(self) -> set[str]:
        """Nodes whose agents are well, and whose Nodes sell reclaimed CPU."""
        sold = {node["metadata"]["name"] for node in self.sublet.cluster.get("nodes")["items"] if _sold_millis(node)}
        return {name for name, one in self.resources().items() if _offer_millis(one) and _is_well(one)} & sold

    def nobody_was_evicted(self) -> bool:
        """Neither evicted by Sublet nor taken for lost; what `kubectl drain` takes away it says itself."""
        tainted = any(one["spec"].get("taints", []) for one in self.resources().values())
        return not tainted and self.sublet.evict_lines() == []

    def hand_out_config(self) -> None:
        """Give all nodes a configuration, and take it back.

        Raises:
            TimeoutError: one does not say that it has it.
        """
        objects = (QUICK_START / "eviction-threshold.yaml").read_text()
        self.sublet.cluster.kubectl("create", "--filename", "-", given=objects)

        def applied() -> bool:
            status = self.sublet.cluster.get("ec", "default").get("status", {})
            return (status.get("targetNodes"), status.get("updatedTargetNodes")) == (len(self.nodes),) * 2

        until(applied, WELL_LIMIT_S, "a configuration on all nodes")
        self.sublet.cluster.kubectl("delete", "kcc,ec", "--all", "--wait")

    def replace_agents(self, how: str, begin: Callable[[], object]) -> None:
        """Have all agents replaced: no pod notices, and no offer is written that is above what is applied."""
        standing = self.standing()
        with self.watched() as watch:
            began_s = time.monotonic()
            begin()
            self.sublet.in_system("rollout", "status", AGENTS, f"--timeout={ROLLOUT_LIMIT_S:.0f}s")
            took_s = time.monotonic() - began_s
            self.sublet.wait_ready()
            self.settle()
            until(self.is_covered, WELL_LIMIT_S, "no offer above what is applied")
        self.sublet.say(f"{how}: all agents replaced after {took_s:.1f} s\n{watch.said()}")
        assert watch.looks.keys() == self.names
        assert not watch.faults, watch.said()
        assert self.standing() == standing
        assert self.nobody_was_evicted()

    def resources(self) -> dict[str, Document]:
        """The CustomNodeResources by node."""
        code, found = self.sublet.cluster.request("GET", KCNRS)
        return {one["metadata"]["name"]: one for one in found["items"]} if code == 200 else {}

    def offers_millis(self) -> dict[str, int]:
        """Reclaimed milli-cores by node, as the CustomNodeResources tell them, of nodes that do."""
        told = {name: _offer_millis(one) for name, one in self.resources().items()}
        return {name: offer for name, offer in told.items() if offer is not None}

    def is_covered(self) -> bool:
        """Whether no node offers more than the kernel grants to its batch pods now."""
        pods, offers = self.pods(BATCH), self.offers_millis()
        granted = {node.site.name: self.granted_millis(node, pods) for node in self.nodes}
        both = [(offer, granted.get(name)) for name, offer in offers.items()]
        return all(millis is None or offer <= millis for offer, millis in both)

    def versions(self) -> dict[str, str]:
        """Which version the agent of each node says that it has."""
        return {
            name: next(
                one["propertyValues"][0]
                for one in resource["spec"]["nodeResourceProperties"]
                if one["propertyName"] == AGENT_VERSION
            )
            for name, resource in self.resources().items()
        }

    def agent(self, node: str) -> Document:
        """The agent's pod of a node, the newest one."""
        found = [pod for pod in self.sublet.pods_of("node") if pod["spec"]["nodeName"] == node]
        return max(found, key=lambda pod: str(pod["metadata"]["creationTimestamp"]))

    def kill(self, pod: Document) -> None:
        """SIGKILL to all processes of a pod, from outside."""
        for node in self.nodes:
            if node.site.name == pod["spec"]["nodeName"]:
                node.isolation.groups.end_processes(_group_of(node, pod))

    def granted_millis(self, node: Node, pods: list[Document]) -> int | None:
        """The CPUs in the sets of the node's batch pods, times 1000, as the kernel has them; None: no such pod runs."""
        return _granted_millis(_sets_of(node, pods))

    @contextmanager
    def watched(self) -> Iterator[OfferWatch]:
        """Compare offers with what is applied, time and again, until the block ends; the batch pods stay the same."""
        pods = self.pods(BATCH)
        sets = {node.site.name: _sets_of(node, pods) for node in self.nodes}

        def granted() -> dict[str, int]:
            now = {name: _granted_millis(paths) for name, paths in sets.items()}
            return {name: millis for name, millis in now.items() if millis is not None}

        watch = OfferWatch(self.offers_millis, granted)
        with ThreadPoolExecutor(2) as pool:
            looking = [pool.submit(watch.run), pool.submit(watch.run_granted)]
            try:
                yield watch
            finally:
                watch.ended.set()
            for one in looking:
                one.result()


def _sets_of(node: Node, pods: list[Document]) -> list[Path]:
    """The sets of the containers of these pods that are on the node."""
    uids = {pod["metadata"]["uid"] for pod in pods if pod["spec"].get("nodeName") == node.site.name}
    groups = node.isolation.groups
    found = [group / "cpuset.cpus" for uid in uids for group in groups.find(f"kubepods/**/pod{uid}/*")]
    return [path for path in found if path.exists()]


def _granted_millis(sets: list[Path]) -> int | None:
    texts = [path.read_text() for path in sets if path.exists()]
    return min((1000 * len(CpuSet.parse(text)) for text in texts if text.strip()), default=None)


def _group_of(node: Node, pod: Mapping[str, Any]) -> str:
    """The pod's group below the node's root, which has the same name in all hierarchies."""
    group = node.isolation.groups.find(f"kubepods/**/pod{pod['metadata']['uid']}")[0]
    return str(group).partition(f"/{node.isolation.groups.root}/")[2]


def _offer_millis(resource: Mapping[str, Any]) -> int | None:
    told = resource.get("status", {}).get("resourceAllocatable", {}).get(TUTORIAL_RECLAIMED_CPU)
    return None if told is None else parse_units(told)


def _sold_millis(node: Mapping[str, Any]) -> int:
    return parse_units(node["status"].get("allocatable", {}).get(RECLAIMED_CPU, 0))


def _is_well(resource: Mapping[str, Any]) -> bool:
    conditions = resource.get("status", {}).get("conditions", [])
    return {"AgentReady", "ServicesReady"} <= {one["type"] for one in conditions if one["status"] == "True"}
