"""The checks of a cluster, in the order in which they are told: what it must offer, then what is installed."""

from sublet.doctor import cluster_api, cluster_bus, cluster_nodes, cluster_parts
from sublet.doctor.cluster_facts import ClusterFacts
from sublet.doctor.finding import Checks

CLUSTER_CHECKS: Checks[ClusterFacts] = {
    "API server": cluster_api.api_server,
    "your rights": cluster_api.may_install,
    "validating policies": cluster_api.validating,
    "mutating policies": cluster_api.mutating,
    "nodes": cluster_nodes.nodes,
    "kubelets": cluster_nodes.kubelets,
    "other systems": cluster_nodes.other_systems,
    "other writers": cluster_nodes.foreign_writers,
    "namespace": cluster_parts.namespace,
    "kinds": cluster_api.kinds,
    "agents": cluster_parts.agents,
    "agents' rights": cluster_api.agents_rights,
    "node objects": cluster_nodes.node_objects,
    "central": cluster_parts.central,
    "bus": cluster_parts.hub,
    "bus passwords": cluster_bus.passwords,
    "bus encryption": cluster_bus.certificate,
    "events": cluster_parts.events,
    "scheduler": cluster_parts.scheduler,
}
