"""The tutorial's objects and words, for whoever plays it on a cluster."""

import re
from pathlib import Path
from typing import Any

import yaml
from rig_parts import until

from kube_rig.installation import Installation
from kube_rig.node import NODE

QUICK_START = Path(__file__).parents[1] / "quick_start"
"""What it prints as YAML."""
CONFIG_LIMIT_S = 20.0
OVERCOMMIT = "reclaimed-resource-pressure-eviction-plugin"
MEMORY = "memory-pressure-eviction-plugin"
LOAD, LOAD_SCOPE = "cpu-pressure-eviction-plugin", "cpu.load.1min.container"
CREATED = "Successfully create eviction; reason: met threshold in scope: {scope} from plugin: {plugin}"
SUCCEEDED = "Evicted pod has been deleted physically; reason: met threshold in scope: {scope} from plugin: {plugin}"

Document = dict[str, Any]


def lines_of(sublet: Installation, pod: str) -> list[tuple[str, str]]:
    """Reason and message of the pod's eviction Events, in the order of the tutorial."""
    said = [re.split(r"\s{2,}", line) for line in sublet.evict_lines() if f"pod/{pod} " in line]
    return sorted((words[3], words[5]) for words in said if words[3] in ("EvictCreated", "EvictSucceeded"))


def configure(sublet: Installation, objects: str, kind: str, *, nodes: int = 1, agents: int = 1) -> None:
    """Create configuration objects, and wait until every node with an agent has them; central counts all as wanted."""
    sublet.type("create", "--filename", "-", given=objects)

    def applied() -> bool:
        status = sublet.cluster.get(kind, "default").get("status", {})
        return (status.get("targetNodes"), status.get("updatedTargetNodes")) == (nodes, agents)

    until(applied, CONFIG_LIMIT_S * sublet.patience, f"{kind}/default on every node with an agent")
    sublet.type("get", kind)


def forget(sublet: Installation, *kinds: str) -> None:
    """Delete configuration objects; the nodes go back to the defaults."""
    sublet.type("delete", ",".join(kinds), "--all", "--wait")

    def told() -> bool:
        nodes = sublet.cluster.get("cnc")["items"]
        return not any(node.get("status", {}).get("katalystCustomConfigList") for node in nodes)

    # A kind that nobody declares stays as it is, so what declares it goes last.
    until(told, CONFIG_LIMIT_S * sublet.patience, f"no {' and no '.join(kinds)} on any node")
    sublet.type("delete", "kcc", "--all", "--wait")


def free_memory_threshold(threshold_bytes: int) -> tuple[Document, Document]:
    """The node is short of memory below this: this machine cannot be filled to the kernel's own mark in a test."""
    group, version = "config.katalyst.kubewharf.io", "v1alpha1"
    target = {"group": group, "resource": "adminqosconfigurations", "version": version}
    memory = {"systemFreeMemoryThresholdMinimum": str(threshold_bytes)}
    config = {"evictionConfig": {"memoryPressureEvictionConfig": memory}}
    about: Document = {"apiVersion": f"{group}/{version}", "metadata": {"name": "qos-configuration"}}
    return (
        about | {"kind": "KatalystCustomConfig", "spec": {"targetType": target}},
        about | {"kind": "AdminQoSConfiguration", "metadata": {"name": "default"}, "spec": {"config": config}},
    )


def printed_taint(which: int) -> Document:
    """The tutorial's, in its order."""
    printed = yaml.safe_load((QUICK_START / "node-taints.yaml").read_text().split("---")[which])
    found: Document = printed["taints"][0]
    return found


def taints(sublet: Installation) -> list[Document]:
    """Of the CustomNodeResource."""
    found: list[Document] = sublet.resource().get("spec", {}).get("taints", [])
    return found


def node_taints(sublet: Installation) -> list[Document]:
    """Of the Node."""
    found: list[Document] = sublet.cluster.get("node", NODE)["spec"].get("taints", [])
    return found


def ours_of_the_node(sublet: Installation) -> set[str]:
    """The keys of the Node's taints that are Sublet's."""
    return {one["key"] for one in node_taints(sublet) if "katalyst" in one["key"]}
