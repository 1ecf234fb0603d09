"""Checks that two agents in one cluster do not write the same. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shared.core.pods.extended_resources import BATCH_NAMES, KOORDINATOR_NAMES, MID_NAMES, own_names
from sublet.doctor.finding import Checks, Finding, counted, ok, problem, some, unchecked, warning
from sublet.migrate.labels import DONE, TAKEOVER
from sublet.migrate.plan.objects import words_of
from sublet.migrate.takeover.node_view import NodeDocuments, NodeView, view_of
from sublet.migrate.takeover.origin import Origin
from sublet.migrate.takeover.preparations import ClusterDocuments, outdated_modes

CHART = "deploy/k8s/chart"


@dataclass(frozen=True, slots=True)
class BesideFacts:
    """Both agents, all over the cluster."""

    origin: Origin
    namespace: str
    values: str
    """The file of values for the chart, as it was named."""
    installed: bool
    hosts: frozenset[str]
    """Nodes on which the other agent runs."""
    nodes: Sequence[Mapping[str, Any]]
    node_objects: Sequence[Mapping[str, Any]]
    """CustomNodeResources."""
    configs: Sequence[Mapping[str, Any]] = ()
    """AdminQoSConfigurations."""

    def views(self) -> Iterator[NodeView]:
        """The nodes on which the other agent runs, as our agents report them."""
        objects = {words_of(one, "metadata").get("name", ""): one for one in self.node_objects}
        for node in self.nodes:
            name = words_of(node, "metadata").get("name", "")
            if name in self.hosts:
                yield view_of(name, NodeDocuments(node, (), objects.get(name)), self.origin.agent)


def other_agent(facts: BesideFacts) -> Finding:
    """Whether there is another agent at all."""
    if not facts.hosts:
        return warning(f"{facts.origin.agent} runs on no node", "nothing to move from: see docs/kubernetes.md")
    return ok(f"{facts.origin.agent} runs on {counted(len(facts.hosts), 'node')}")


def installation(facts: BesideFacts) -> Finding:
    """Whether Sublet is there; else the command."""
    if facts.installed:
        return ok(f"Sublet is installed in {facts.namespace}")
    return warning(
        "Sublet is not installed yet",
        f"helm install sublet {CHART} -n {facts.namespace} -f {facts.values} --set mode=observe",
    )


def modes(facts: BesideFacts) -> Finding:
    """Whether Sublet observes wherever the other agent works."""
    seen = list(facts.views())
    if not facts.origin.beside:
        return _apart([one.name for one in seen if one.observes is not None], facts.origin)
    enforcing = sorted(one.name for one in seen if one.observes is False)
    if enforcing:
        return problem(
            f"Sublet enforces beside {facts.origin.agent} on {some(enforcing)}: both write the same groups",
            f"helm upgrade sublet {CHART} -n {facts.namespace} --reuse-values --set mode=observe",
        )
    silent = sorted(one.name for one in seen if one.observes is None)
    if silent:
        return unchecked(f"no agent of Sublet reports on {some(silent)}", "kubectl get kcnr")
    return ok(f"Sublet observes on {counted(len(seen), 'node')} with {facts.origin.agent}")


def _apart(both: Sequence[str], origin: Origin) -> Finding:
    if both:
        return problem(
            f"both agents report for {some(sorted(both))}, in one object",
            f"keep Sublet's to nodes that were taken over: values of sublet migrate {origin.system} plan",
        )
    return ok("no node has both agents")


def resource_writers(facts: BesideFacts) -> Finding:
    """Whether Sublet writes batch or mid resources of nodes that are not its own yet."""
    found = {
        words_of(node, "metadata").get("name", ""): own_names(node)
        for node in facts.nodes
        if words_of(node, "metadata", "labels").get(TAKEOVER) != DONE and own_names(node) & KOORDINATOR_NAMES
    }
    if found and facts.hosts:
        written = frozenset[str]().union(*found.values())
        kinds = [kind for kind, names in (("batch", BATCH_NAMES), ("mid", MID_NAMES)) if names & written]
        shown = " and ".join(f"{kind}-cpu" for kind in kinds)
        keys = ", ".join(f"reporter.{kind}.enabled=false" for kind in kinds)
        return problem(
            f"Sublet writes {shown} of {some(sorted(found))}, as Koordinator's manager does",
            f"set {keys} and slo.enabled=false until the manager stops (plan: later)",
        )
    return ok("they are Koordinator's alone" if facts.hosts else "nobody else writes them")


def config_objects(facts: BesideFacts) -> Finding:
    """Whether the config objects of taken nodes still say what is said for all nodes."""
    outdated = outdated_modes(ClusterDocuments(facts.namespace, (), facts.configs, ()))
    if outdated:
        return warning(
            f"{some(outdated)}: not what the object for all nodes says by now",
            f"a takeover brings them up to date: sublet migrate {facts.origin.system} takeover --all --apply",
        )
    return ok("config objects of nodes that were taken over say what is said for all")


BESIDE_CHECKS: Checks[BesideFacts] = {
    "other agent": other_agent,
    "Sublet": installation,
    "modes": modes,
    "batch and mid resources": resource_writers,
    "config objects": config_objects,
}
