"""A small cluster as its API server tells it: nodes, their objects, who leads, and configurations."""

from typing import Any

import cluster_case as case
from test_doctor_kube import items

from sublet.cluster.reading import ClusterReading

NODE_OBJECTS = "/apis/node.katalyst.kubewharf.io/v1alpha1/customnoderesources"
CONFIGS = "/apis/config.katalyst.kubewharf.io/v1alpha1"
LEASE = f"/apis/coordination.k8s.io/v1/namespaces/{case.SYSTEM}/leases/sublet-central"
OLDER, TODAY = "katalyst.kubewharf.io/reclaimed_", "resource.katalyst.kubewharf.io/reclaimed_"
PRESSURE = "node.katalyst.kubewharf.io/MemoryPressure"


def offering(name: str, ready: str = "True", **amounts: str) -> dict[str, Any]:
    """A node's object with what it offers."""
    conditions = [
        {"type": "AgentReady", "status": ready, "reason": "WithAgentsNotReady"},
        {"type": "ServicesReady", "status": ready, "lastHeartbeatTime": case.JUST_NOW},
    ]
    offer = {f"{OLDER}{resource}": amount for resource, amount in amounts.items()}
    return case.named(name, status={"conditions": conditions, "resourceAllocatable": offer})


def node(name: str, millis: str, *taints: str) -> dict[str, Any]:
    """A Node that shows CPU under both names, the older one less: pods ask for it by today's."""
    allocatable = {f"{TODAY}millicpu": millis, f"{OLDER}millicpu": "0", "cpu": "8"}
    return case.named(name, spec={"taints": [{"key": key} for key in taints]}, status={"allocatable": allocatable})


def config(kind: str, name: str, **parts: Any) -> dict[str, Any]:
    return {"kind": kind, **case.named(name, "default", status=parts)}


def versioned(document: dict[str, Any], version: str, revision: str) -> dict[str, Any]:
    """The node's object with what runs there."""
    words = {"agent_version": version, "agent_revision": revision}
    rows: list[dict[str, Any]] = [{"propertyName": "numa", "propertyQuantity": "2"}]
    rows += [{"propertyName": name, "propertyValues": [word]} for name, word in words.items()]
    return document | {"spec": {"nodeResourceProperties": rows}}


READING = ClusterReading(
    now=case.NOW,
    nodes=[node("n2", "0", PRESSURE, "example.org/own"), node("n1", "1500")],
    node_objects=[
        versioned(offering("n1", millicpu="2k", memory="4Gi"), "0.1.0", "0123abcd"),
        offering("gone", ready="False"),
    ],
    lease=case.GOOD.lease,  # type: ignore[arg-type]
    configs=[
        config("EvictionConfiguration", "mem", targetNodes=3, updatedTargetNodes=2,
               conditions=[{"type": "Valid", "status": "False", "message": "threshold 70: at most 60"}]),
        config("AdminQoSConfiguration", "new"),
    ],
)  # fmt: skip


def served() -> dict[str, Any]:
    kinds = ("katalystcustomconfigs", "evictionconfigurations", "adminqosconfigurations")
    return {
        "/api/v1/nodes": items(*READING.nodes),
        NODE_OBJECTS: items(*READING.node_objects),
        f"{NODE_OBJECTS}/n1": {**offering("n1"), "metadata": {"name": "n1", "managedFields": [{}]}},
        LEASE: case.GOOD.lease,
        **{f"{CONFIGS}/{kind}": items() for kind in kinds},
        f"{CONFIGS}/evictionconfigurations": items(case.named("mem", "default")),
    }
