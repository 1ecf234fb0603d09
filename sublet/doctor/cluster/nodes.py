"""Checks of a cluster: its nodes, and other writers on them. Pure."""

from collections.abc import Iterator, Mapping
from typing import Any

from shared.core.pods.extended_resources import own_names
from sublet.doctor.cluster.api import NEWEST, OLDEST, minor_version, not_installed
from sublet.doctor.cluster.facts import ClusterFacts
from sublet.doctor.finding import Finding, Unknown, counted, ok, problem, some, unchecked, warning
from sublet.doctor.node.neighbours import AGENTS, judged_policy

OWN_MANAGERS = ("sublet-reporter", "sublet-central")
"""Field managers of those of Sublet's services that write reclaimed resources to Nodes."""


def nodes(facts: ClusterFacts) -> Finding:
    """Whether there are nodes for agents, and kubelets that Sublet knows."""
    if isinstance(facts.nodes, Unknown):
        return unchecked(facts.nodes)
    linux = [one for one in facts.nodes if _info(one).get("operatingSystem") == "linux"]
    if not linux:
        return problem("no Linux node", "add one: agents run on Linux nodes alone")
    strange = [
        f"{_name(one)} {text}"
        for one in linux
        if (version := minor_version(text := str(_info(one).get("kubeletVersion")))) is None
        or not OLDEST <= version <= NEWEST
    ]
    if strange:
        return warning(
            f"kubelets outside of 1.30 to 1.35: {some(strange)}", "upgrade these nodes, or keep the agent off"
        )
    return ok(f"kubelets of 1.30 to 1.35 on {counted(len(linux), 'Linux node')}")


def kubelets(facts: ClusterFacts) -> Finding:
    """The CPU manager of the nodes, as their kubelets run now."""
    if isinstance(facts.kubelets, Unknown):
        return unchecked(facts.kubelets, "on a node: sudo sublet doctor --node")
    told = {node: one for node, one in facts.kubelets.items() if not isinstance(one, Unknown)}
    static = sorted(node for node, one in told.items() if one.get("cpuManagerPolicy") == "static")
    if static:
        return judged_policy("static", f"on {some(static)}")
    silent = [f"{node}: {one.why}" for node, one in facts.kubelets.items() if isinstance(one, Unknown)]
    if silent or not told:
        return unchecked(some(silent) or "no node", "on that node: sudo sublet doctor --node")
    drivers = sorted({str(one.get("cgroupDriver")) for one in told.values()})
    return ok(f"CPU manager none, driver {', '.join(drivers)} on {counted(len(told), 'node')}")


def node_objects(facts: ClusterFacts) -> Finding:
    """Whether every node with an agent tells what it offers, and its agent is well."""
    if (absent := not_installed(facts)) is not None:
        return absent
    if isinstance(facts.node_objects, Unknown):
        return unchecked(facts.node_objects)
    daemon_set = facts.workload("DaemonSet", "sublet-node") or {}
    wanted = int((daemon_set.get("status") or {}).get("desiredNumberScheduled") or 0)
    ill = sorted(f"{_name(one)}: {why}" for one in facts.node_objects if (why := _ill(one)))
    if len(facts.node_objects) < wanted:
        return problem(
            f"{counted(len(facts.node_objects), 'CustomNodeResource')} for {counted(wanted, 'agent')}",
            f"kubectl -n {facts.namespace} logs daemonset/sublet-node -c agent",
        )
    if ill:
        return problem(some(ill), "kubectl get kcnr -o wide, then on that node: sudo sublet doctor --node")
    return ok(f"{counted(len(facts.node_objects), 'CustomNodeResource')}, all agents well")


def foreign_writers(facts: ClusterFacts) -> Finding:
    """Whether anybody else writes reclaimed resources to the Nodes: the last writer would win, again and again."""
    if isinstance(facts.nodes, Unknown):
        return unchecked(facts.nodes)
    found = sorted({(manager, _name(one)) for one in facts.nodes for manager in _managers(one)})
    others = [(manager, node) for manager, node in found if manager not in OWN_MANAGERS]
    if others:
        told = some([f"{manager} on {node}" for manager, node in others])
        return problem(
            f"reclaimed resources of Nodes are also written by {told}",
            f"stop {others[0][0]}: it was another colocation system, or a hand",
        )
    if found and isinstance(facts.installed, Unknown):
        return unchecked(facts.installed)
    if found and not facts.installed:
        left = some(sorted({node for _manager, node in found}))
        return warning(
            f"reclaimed resources are left over on {left}",
            "take them away: sublet uninstall --kubernetes",
        )
    if not found:
        return ok("nobody writes reclaimed resources to the Nodes")
    return ok("Sublet alone writes reclaimed resources to the Nodes")


def other_systems(facts: ClusterFacts) -> Finding:
    """Other colocation agents, which would write the same groups."""
    if isinstance(facts.daemon_sets, Unknown):
        return unchecked(facts.daemon_sets)
    found = sorted(
        f"{one['metadata'].get('namespace')}/{one['metadata']['name']}"
        for one in facts.daemon_sets
        if any(agent in words for agent in AGENTS for words in _words(one))
    )
    if found:
        return problem(
            f"DaemonSets of another colocation system: {some(found)}",
            "move from it (sublet migrate), or keep its nodes and Sublet's apart: node.nodeSelector of the chart",
        )
    return ok("no koordlet, no katalyst-agent")


def _words(daemon_set: Mapping[str, Any]) -> Iterator[str]:
    """Where a program's name would stand: its own name, and those of its containers and images."""
    yield daemon_set["metadata"]["name"]
    template = ((daemon_set.get("spec") or {}).get("template") or {}).get("spec") or {}
    for container in template.get("containers") or ():
        yield str(container.get("name"))
        yield str(container.get("image")).rpartition("/")[2]


def _managers(node: Mapping[str, Any]) -> Iterator[str]:
    """Field managers that own a reclaimed resource of a Node."""
    wanted = {f"f:{name}" for name in own_names(node)}
    for entry in node["metadata"].get("managedFields") or ():
        status = (entry.get("fieldsV1") or {}).get("f:status") or {}
        if any(wanted & (status.get(part) or {}).keys() for part in ("f:capacity", "f:allocatable")):
            yield str(entry.get("manager"))


def _ill(cnr: Mapping[str, Any]) -> str:
    conditions = {one["type"]: one for one in (cnr.get("status") or {}).get("conditions") or ()}
    ready, services = conditions.get("AgentReady"), conditions.get("ServicesReady")
    if ready is None:
        return "says nothing of its agent"
    told = services if services is not None and services.get("status") == "False" else ready  # it names the service
    return "" if ready.get("status") == "True" else str(told.get("message") or told.get("reason"))


def _info(node: Mapping[str, Any]) -> Mapping[str, Any]:
    info: Mapping[str, Any] = (node.get("status") or {}).get("nodeInfo") or {}
    return info


def _name(one: Mapping[str, Any]) -> str:
    return str(one["metadata"]["name"])
