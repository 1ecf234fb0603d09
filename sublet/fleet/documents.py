"""The objects of a cluster's nodes as an API server sends them, in their usual sizes: a watch costs by what it carries.

Central's own parts of them are made by central's rules, so that it finds nothing to mend when it starts.
"""

import hashlib
from typing import Any

from services.central.core.lost_nodes.cnr_conditions import conditions_of
from services.central.core.lost_nodes.verdict import Judged
from services.central.core.objects.companions import companion_metadata
from services.central.core.objects.nodes import NODE_LEASES, ZONE_LABEL
from shared.contracts.cluster.pauses import POOL_LABEL
from shared.contracts.pod import RECLAIMED_CPU, RECLAIMED_MEMORY
from shared.core.api_kind import CNCS, CNRS, LEASES, NODES, PODS

Document = dict[str, Any]
BORN = "2026-01-01T00:00:00Z"
AGENT_NAMESPACE = "sublet-system"
AGENT = {"app.kubernetes.io/name": "sublet", "app.kubernetes.io/component": "node"}
POOLS, ZONES, IMAGES = 4, 3, 50
CPUS, GIB = 48, 1 << 30


def uid(what: str) -> str:
    """A UID that follows from a name."""
    digits = hashlib.sha256(what.encode()).hexdigest()
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-8{digits[17:20]}-{digits[20:32]}"


def labels_of(number: int, name: str) -> dict[str, str]:
    """Of a node."""
    return {
        "kubernetes.io/hostname": name, "kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux",
        "node.kubernetes.io/instance-type": "c7.12xlarge",
        POOL_LABEL: f"pool-{number % POOLS}", ZONE_LABEL: f"zone-{number % ZONES}",
    }  # fmt: skip


def node(number: int, name: str) -> Document:
    """A Node as its kubelet reports it, with the images that it holds."""
    amounts = {"cpu": str(CPUS), "memory": f"{192 * GIB}", "pods": "110",
               RECLAIMED_CPU: "30k", RECLAIMED_MEMORY: f"{90 * GIB}"}  # fmt: skip
    conditions = [
        {"type": kind, "status": status, "reason": "Kubelet", "message": f"kubelet says {kind} {status}",
         "lastHeartbeatTime": BORN, "lastTransitionTime": BORN}
        for kind, status in (("MemoryPressure", "False"), ("DiskPressure", "False"), ("PIDPressure", "False"),
                             ("Ready", "True"))
    ]  # fmt: skip
    images = [
        {"names": [f"registry.example/team/service-{place}@sha256:{'0' * 64}"], "sizeBytes": 1_000_000 + place}
        for place in range(IMAGES)
    ]
    metadata = {"name": name, "uid": uid(f"node/{name}"), "labels": labels_of(number, name), "creationTimestamp": BORN}
    status = {"capacity": amounts, "allocatable": dict(amounts), "conditions": conditions, "images": images}
    return {**NODES.head, "metadata": metadata, "spec": {"podCIDR": "10.0.0.0/24"}, "status": status}


def lease(name: str) -> Document:
    """The lease of a node's kubelet."""
    owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": uid(f"node/{name}")}
    written = {"f:metadata": {"f:ownerReferences": {".": {}, f'k:{{"uid":"{owner["uid"]}"}}': {}}},
               "f:spec": {"f:holderIdentity": {}, "f:leaseDurationSeconds": {}, "f:renewTime": {}}}  # fmt: skip
    fields = [{"manager": "kubelet", "operation": "Update", "apiVersion": LEASES.api_version, "time": BORN,
               "fieldsType": "FieldsV1", "fieldsV1": written}]  # fmt: skip
    metadata = {"name": name, "namespace": NODE_LEASES, "uid": uid(f"lease/{name}"), "creationTimestamp": BORN,
                "ownerReferences": [owner], "managedFields": fields}  # fmt: skip
    spec = {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": BORN}
    return {**LEASES.head, "metadata": metadata, "spec": spec}


def agent(name: str) -> Document:
    """The agent's pod of a node, ready."""
    metadata = {"name": f"agent-{name}", "namespace": AGENT_NAMESPACE, "uid": uid(f"agent/{name}"), "labels": AGENT}
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    return {**PODS.head, "metadata": metadata, "spec": {"nodeName": name, "containers": []}, "status": status}


def node_object(number: int, name: str) -> Document:
    """A CustomNodeResource as reporter and central keep it."""
    amounts = {RECLAIMED_CPU: "30k", RECLAIMED_MEMORY: f"{90 * GIB}"}
    ours = [one.row(BORN) for one in conditions_of(Judged("ready", ""), "Ready", well=True)]
    theirs = [{"type": "ServicesReady", "status": "True", "reason": "AllReady", "message": "",
               "lastHeartbeatTime": BORN, "lastTransitionTime": BORN}]  # fmt: skip
    zones = [
        {"type": "Socket", "name": str(socket), "children": [
            {"type": "Numa", "name": str(socket), "resources": {"allocatable": amounts, "capacity": amounts},
             "attributes": [{"name": "katalyst.kubewharf.io/cpus", "value": f"{socket * 24}-{socket * 24 + 23}"}],
             "allocations": [{"consumer": f"default/batch-{pod}/{uid(f'pod/{name}/{pod}')}", "requests": amounts}
                             for pod in range(4)]}]}
        for socket in range(2)
    ]  # fmt: skip
    status = {"resources": {"allocatable": amounts, "capacity": amounts}, "resourceAllocatable": amounts,
              "resourceCapacity": amounts, "topologyZone": zones, "conditions": [*ours, *theirs]}  # fmt: skip
    metadata = companion_metadata(name, uid(f"node/{name}"), labels_of(number, name))
    spec = {"nodeResourceProperties": [{"propertyName": "numa", "propertyValues": ["2"]}]}
    return {**CNRS.head, "metadata": {**metadata, "uid": uid(f"cnr/{name}")}, "spec": spec, "status": status}


def node_config(number: int, name: str) -> Document:
    """A CustomNodeConfig to which nothing points yet."""
    metadata = companion_metadata(name, uid(f"node/{name}"), labels_of(number, name))
    return {**CNCS.head, "metadata": {**metadata, "uid": uid(f"cnc/{name}")}, "spec": {}}
