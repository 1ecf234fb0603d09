"""The checks of a cluster, in the order in which they are reported: its prerequisites, then the installation."""

from sublet.doctor.cluster import api, bus, nodes, parts, scheduling, webhook
from sublet.doctor.cluster.facts import ClusterFacts
from sublet.doctor.finding import Checks

CLUSTER_CHECKS: Checks[ClusterFacts] = {
    "API server": api.api_server,
    "your rights": api.may_install,
    "validating policies": api.validating,
    "mutating policies": api.mutating,
    "nodes": nodes.nodes,
    "kubelets": nodes.kubelets,
    "other systems": nodes.other_systems,
    "other writers": nodes.foreign_writers,
    "namespace": parts.namespace,
    "kinds": api.kinds,
    "agents": parts.agents,
    "agents' rights": api.agents_rights,
    "node objects": nodes.node_objects,
    "central": parts.central,
    "bus": parts.hub,
    "bus passwords": bus.passwords,
    "bus encryption": bus.certificate,
    "events": parts.events,
    "scheduler": scheduling.schedulers,
    "profiles": webhook.profiles,
}

INSTALLED_CHECKS: Checks[ClusterFacts] = {
    name: CLUSTER_CHECKS[name] for name in ("kinds", "agents", "node objects", "central", "bus", "events")
}
"""What an installation that works has: `helm test` asks for these alone, with few rights."""
