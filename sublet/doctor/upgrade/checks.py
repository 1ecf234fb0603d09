"""The checks before an upgrade: versions that run, kinds and fields that come and go, values that are refused. Pure."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shared.contracts.kube.node_conditions import AGENT_READY
from shared.contracts.kube.node_properties import AGENT_VERSION
from sublet.doctor.finding import Checks, Finding, Known, Unknown, counted, ok, problem, some, unchecked, warning
from sublet.doctor.upgrade.changes import (
    changed_defaults,
    fields_gone,
    new_keys,
    refused_keys,
    stored_versions,
    versions,
)
from sublet.doctor.upgrade.chart import UpgradeChart
from sublet.doctor.upgrade.release import HelmRelease

Document = Mapping[str, Any]
MOST_SHOWN = 6


@dataclass(frozen=True, slots=True)
class UpgradeFacts:
    """A chart, and the cluster that it is for."""

    chart: UpgradeChart
    kinds: Known[Sequence[Document]]
    """All CustomResourceDefinitions of the cluster."""
    node_objects: Known[Sequence[Document]]
    """All CustomNodeResources."""
    release: Known[HelmRelease | None]
    """What Helm has installed; None where it has nothing."""

    @property
    def there(self) -> dict[str, Document]:
        """The chart's kinds that the cluster has, by name."""
        found = () if isinstance(self.kinds, Unknown) else self.kinds
        named = {str(one["metadata"]["name"]): one for one in found}
        return {name: one for name, one in named.items() if name in self.chart.kinds}

    @property
    def apply(self) -> str:
        """What brings the chart's kinds: Helm never changes those that are there."""
        return f"kubectl apply --server-side --force-conflicts -k {self.chart.folder}/crds"


def running(facts: UpgradeFacts) -> Finding:
    """Which versions the running agents have: more than one while an upgrade is under way.

    A node whose agent does not run has none, whatever its object says of the last one.
    """
    if isinstance(facts.node_objects, Unknown):
        return unchecked(facts.node_objects)
    lost = [one for one in facts.node_objects if _agent_is_lost(one)]
    found = Counter(_agent_version(one) for one in facts.node_objects if one not in lost)
    bare = found.pop(None, 0)
    said = [f"{version} on {counted(number, 'node')}" for version, number in sorted(found.items())]
    said += [f"not running on {counted(len(lost), 'node')}"] if lost else []
    said += [f"none on {counted(bare, 'node')}"] if bare else []
    words = f"{', '.join(said) or 'none'}; the chart is {facts.chart.version}"
    if len(found) > 1:
        return warning(f"agents of several versions: {words}", "wait for the rollout of daemonset/sublet-node")
    if lost:
        return warning(
            f"agents: {words}", "wait for the rollout of daemonset/sublet-node, or: sublet nodes --not-ready"
        )
    return ok(f"agents: {words}")


def kinds_new(facts: UpgradeFacts) -> Finding:
    """Which kinds, versions and fields the upgrade needs and the cluster lacks: what it lacks it drops in silence."""
    if isinstance(facts.kinds, Unknown):
        return unchecked(facts.kinds)
    there = facts.there
    lacks = [name for name in facts.chart.kinds if name not in there]
    for name, old in there.items():
        new = facts.chart.kinds[name]
        lacks += [f"{name} {version}" for version in versions(new).keys() - versions(old).keys()]
        lacks += [f"{name} {field}" for field in fields_gone(new, old)]
    if lacks and there:
        return warning(f"the upgrade brings {some(lacks, MOST_SHOWN)}", f"before helm upgrade: {facts.apply}")
    return ok(
        f"{len(there)} kinds, with all that the upgrade writes" if there else "no kinds yet: the chart brings them"
    )


def kinds_gone(facts: UpgradeFacts) -> Finding:
    """Which fields the new kinds no longer have: objects lose them when they are written next."""
    if isinstance(facts.kinds, Unknown):
        return unchecked(facts.kinds)
    gone = [
        f"{name} {field}" for name, old in facts.there.items() for field in fields_gone(old, facts.chart.kinds[name])
    ]
    if gone:
        keep = "keep what objects say there: kubectl get KIND -A -o yaml > KIND.yaml"
        return warning(f"fields that would go: {some(gone, MOST_SHOWN)}", keep)
    return ok("no field of an object goes")


def stored(facts: UpgradeFacts) -> Finding:
    """Whether an object may be stored in a version that the new kinds do not have.

    Fact: docs/facts/kubernetes.md#stored-versions-of-a-kind.
    """
    if isinstance(facts.kinds, Unknown):
        return unchecked(facts.kinds)
    lost = [
        f"{name} {version}"
        for name, old in facts.there.items()
        for version in stored_versions(old)
        if version not in versions(facts.chart.kinds[name])
    ]
    if lost:
        return problem(
            f"objects may be stored in versions that go: {some(lost, MOST_SHOWN)}",
            "with today's kinds rewrite them (kubectl get KIND -A -o json | kubectl replace -f -), then take the"
            " version out of the kind's status.storedVersions (kubectl patch crd KIND --subresource=status)",
        )
    return ok("every stored version stays")


def values(facts: UpgradeFacts) -> Finding:
    """Which of the values that somebody gave the chart refuses, and which are new or have another default."""
    if isinstance(facts.release, Unknown):
        return unchecked(facts.release)
    if facts.release is None:
        return unchecked("Helm has no deployed release sublet here", "of another name or namespace: -n NAMESPACE")
    release, chart = facts.release, facts.chart
    if refused := refused_keys(release.given, chart.schema):
        return problem(
            f"values that the chart refuses: {some(refused, MOST_SHOWN)}",
            "CHANGELOG.md names what they have become; helm get values sublet shows yours",
        )
    said = [f"{release.version} -> {chart.version}"]
    if fresh := new_keys(release.defaults, chart.values):
        said.append(f"new: {some(fresh, MOST_SHOWN)}")
    if changed := changed_defaults(release.defaults, chart.values, release.given):
        return warning("; ".join((*said, f"other defaults: {some(changed, MOST_SHOWN)}")), "give those that shall stay")
    return ok("; ".join(said))


def _agent_version(node_object: Document) -> str | None:
    """Return the version of a node's agent; None: there is no sign of one."""
    listed = (node_object.get("spec") or {}).get("nodeResourceProperties") or ()
    words = {one.get("propertyName"): one.get("propertyValues") or () for one in listed if isinstance(one, dict)}
    said = next((str(word) for word in words.get(AGENT_VERSION, ())), None)
    return said or ("unknown" if _agent_ready(node_object) == "True" else None)


def _agent_is_lost(node_object: Document) -> bool:
    return _agent_ready(node_object) == "False"


def _agent_ready(node_object: Document) -> str | None:
    """Return the status of the condition in which central says whether a node's agent runs."""
    rows = (node_object.get("status") or {}).get("conditions") or ()
    return next((str(one.get("status")) for one in rows if one.get("type") == AGENT_READY), None)


UPGRADE_CHECKS: Checks[UpgradeFacts] = {
    "agents": running,
    "kinds to come": kinds_new,
    "fields to go": kinds_gone,
    "stored versions": stored,
    "values": values,
}
