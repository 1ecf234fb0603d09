"""Checks of a cluster: the namespace and the parts of an installation. Pure."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sublet.doctor.cluster.api import CHART, not_installed
from sublet.doctor.cluster.facts import ClusterFacts, Document
from sublet.doctor.finding import Finding, Known, Unknown, ok, problem, unchecked, warning

ALLOWED, ENFORCE = "sublet.io/system-cores", "pod-security.kubernetes.io/enforce"
LEASE_STALE_S = 60.0
"""Four times central's lease: a holder that has not renewed it for so long is dead."""


def namespace(facts: ClusterFacts) -> Finding:
    """Whether the agents' pods are let into their namespace."""
    found, name = facts.own_namespace, facts.namespace
    if isinstance(found, Unknown):
        return unchecked(found)
    label = f"kubectl label namespace {name} {ALLOWED}=allowed {ENFORCE}=privileged --overwrite"
    if found is None:
        return warning(f"no namespace {name} yet", f"kubectl create namespace {name} && {label}")
    labels = found["metadata"].get("labels") or {}
    if labels.get(ALLOWED) != "allowed":
        return problem(f"namespace {name} lacks {ALLOWED}=allowed: the agents' pods are refused", label)
    # Without the label the cluster's default holds, which nobody can read here: a warning below.
    if labels.get(ENFORCE, "privileged") != "privileged":
        return problem(f"pod security of {name} is {labels[ENFORCE]}: the agents' hostPath volumes are refused", label)
    if ENFORCE not in labels:
        return warning(f"pod security of {name} is the cluster's default, which may refuse hostPath volumes", label)
    return ok(f"{name}: system_cores allowed, pod security privileged")


def agents(facts: ClusterFacts) -> Finding:
    """Whether an agent is ready on every node that should have one."""
    if (absent := not_installed(facts)) is not None:
        return absent
    status = (facts.workload("DaemonSet", "sublet-node") or {}).get("status") or {}
    wanted, ready = int(status.get("desiredNumberScheduled") or 0), int(status.get("numberReady") or 0)
    if wanted == 0:
        return warning("DaemonSet sublet-node fits no node", "change the chart's node.nodeSelector or node.tolerations")
    if ready < wanted:
        return problem(f"{ready} of {wanted} agents are ready", describe(facts, "node"))
    return ok(f"{ready} of {wanted} agents are ready")


def central(facts: ClusterFacts) -> Finding:
    """Whether central runs, and one of it leads."""
    down = _replicas(facts, facts.deployments, "Deployment", "sublet-central", "central")
    if down is not None:
        return down
    if isinstance(facts.lease, Unknown):
        return unchecked(facts.lease)
    logs = f"kubectl -n {facts.namespace} logs deployment/sublet-central"
    spec = (facts.lease or {}).get("spec") or {}
    renewed = moment(spec.get("renewTime"))
    if not spec.get("holderIdentity") or renewed is None:
        return problem("no central leads: nobody holds the lease sublet-central", logs)
    age_s = (facts.now - renewed).total_seconds()
    if age_s > LEASE_STALE_S:
        return problem(f"the lease sublet-central was last renewed {age_s:.0f} s ago by {spec['holderIdentity']}", logs)
    return ok(f"{spec['holderIdentity']} leads")


def hub(facts: ClusterFacts) -> Finding:
    """Whether the NATS hub runs, and keeps what it has when its pods are replaced."""
    down = _replicas(facts, facts.stateful_sets, "StatefulSet", "sublet-bus", "bus")
    if down is not None:
        return down
    found = facts.workload("StatefulSet", "sublet-bus") or {}
    if not (found.get("spec") or {}).get("volumeClaimTemplates"):
        return warning(
            "the NATS hub sublet-bus is ready, and loses events that nobody has read yet when its pod is replaced",
            "give it volumes: helm upgrade with bus.storage=2Gi, after kubectl delete statefulset sublet-bus",
        )
    return ok("the NATS hub sublet-bus is ready")


def events(facts: ClusterFacts) -> Finding:
    """Whether evictions become Events of Kubernetes; an installation may leave that out."""
    known = not isinstance(facts.deployments, Unknown)
    if known and facts.installed is True and facts.workload("Deployment", "sublet-events") is None:
        return ok("switched off (events.enabled=false)")
    down = _replicas(facts, facts.deployments, "Deployment", "sublet-events", "events")
    return down or ok("evictions become Events")


def describe(facts: ClusterFacts, component: str) -> str:
    """The command that shows a component's pods."""
    return f"kubectl -n {facts.namespace} describe pods -l app.kubernetes.io/component={component}"


def moment(text: Any) -> datetime | None:
    """A time of the API server; None where there is none."""
    try:
        return datetime.fromisoformat(str(text))
    except ValueError:
        return None


def _replicas(
    facts: ClusterFacts, there: Known[Sequence[Document]], kind: str, name: str, component: str
) -> Finding | None:
    """What is wrong with a workload of Sublet's; None for nothing."""
    if isinstance(there, Unknown):
        return unchecked(there)
    found = facts.workload(kind, name)
    if found is None:
        return not_installed(facts) or problem(f"{kind} {name} is not there", f"{CHART} -n {facts.namespace}")
    # The API server's own default is 1.
    wanted = int((found.get("spec") or {}).get("replicas", 1))
    ready = int((found.get("status") or {}).get("readyReplicas") or 0)
    look = describe(facts, component)
    if ready == 0:
        return problem(f"no pod of {kind} {name} is ready", look)
    if ready < wanted:
        return warning(f"{ready} of {wanted} pods of {kind} {name} are ready", look)
    return None
