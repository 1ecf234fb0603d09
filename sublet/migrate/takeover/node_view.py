"""`NodeView` is the API server's view of one node's two agents at one moment. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sublet.migrate.labels import AGENT_LABEL, HERE, TAKEOVER
from sublet.migrate.plan.objects import part_of, rows_of, words_of

OWN_AGENT = "agent"
OWN_COMPONENT = {"app.kubernetes.io/name": "sublet", "app.kubernetes.io/component": "node"}


@dataclass(frozen=True, slots=True)
class NodeView:
    """One node; a condition that nobody reports is None."""

    name: str
    label: str | None
    """Of the handing over."""
    called: bool
    """Whether the label of our agent is on the node."""
    ready: bool
    theirs: Sequence[str] = ()
    """Pods of the other agent on the node, ending ones as well."""
    ours: bool = False
    """Whether our agent's pod runs there."""
    observes: bool | None = None
    well: bool = False
    """Whether our agent and its services are ready, and what it reports is applied."""
    why: str = ""
    """What our agent's object says where it is not well."""
    suppresses: bool | None = None
    """Whether the other agent limits best-effort pods there; None where nothing says so."""


@dataclass(frozen=True, slots=True)
class NodeDocuments:
    """What a view is made of; None where it is not there."""

    node: Mapping[str, Any]
    pods: Sequence[Mapping[str, Any]]
    cnr: Mapping[str, Any] | None
    node_slo: Mapping[str, Any] | None = None


def view_of(name: str, seen: NodeDocuments, agent: str) -> NodeView:
    """What the documents say; they may be of any shape."""
    labels = words_of(seen.node, "metadata", "labels")
    conditions = _conditions(seen.cnr)
    well, why = _well(conditions)
    slo = part_of(seen.node_slo, "spec", "resourceUsedThresholdWithBE")
    return NodeView(
        name=name,
        label=labels.get(TAKEOVER),
        called=labels.get(AGENT_LABEL) == HERE,
        ready=_conditions(seen.node).get("Ready", ("", ""))[0] == "True",
        theirs=tuple(_title(pod) for pod in seen.pods if _runs(pod, agent)),
        ours=any(OWN_COMPONENT.items() <= words_of(pod, "metadata", "labels").items() for pod in seen.pods),
        observes=conditions["Observing"][0] == "True" if "Observing" in conditions else _reports(conditions, False),
        well=well,
        why=why,
        suppresses=bool(slo.get("enable")) if seen.node_slo is not None else None,
    )


def _reports(conditions: Mapping[str, tuple[str, str]], otherwise: bool) -> bool | None:
    """A condition that is absent means no, where our agent reports at all."""
    return otherwise if "ServicesReady" in conditions else None


def _well(conditions: Mapping[str, tuple[str, str]]) -> tuple[bool, str]:
    wanted = ["AgentReady", "ServicesReady", "AllocationFresh"]
    if "Observing" not in conditions:
        wanted.append("AllocationApplied")
    for name in wanted:
        status, message = conditions.get(name, ("", "nobody reports it"))
        if status != "True":
            return False, f"{name}: {message}"
    return True, ""


def _conditions(document: Mapping[str, Any] | None) -> dict[str, tuple[str, str]]:
    rows = rows_of(part_of(document, "status"), "conditions")
    return {str(row.get("type")): (str(row.get("status")), str(row.get("message") or "")) for row in rows}


def _runs(pod: Mapping[str, Any], agent: str) -> bool:
    """Whether a pod is the other agent's: by its owner, and the name or image of a container."""
    owners = [one for one in rows_of(part_of(pod, "metadata"), "ownerReferences") if one.get("kind") == "DaemonSet"]
    names = [f"{one.get('name')} {str(one.get('image')).rpartition('/')[2]}" for one in _containers(pod)]
    return bool(owners) and any(agent in name for name in [*names, *(str(one.get("name")) for one in owners)])


def _containers(pod: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return rows_of(part_of(pod, "spec"), "containers")


def _title(pod: Mapping[str, Any]) -> str:
    words = words_of(pod, "metadata")
    return f"{words.get('namespace', '')}/{words.get('name', '')}"
