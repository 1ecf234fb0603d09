"""Checks a cluster's schedulers: who places pods of both dialects, and whether a node suits them. Pure.

The API server does not list schedulers, so the check uses the state of their pods.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from shared.core.pods.extended_resources import BATCH_NAMES, MID_NAMES, names_asked_for
from sublet.doctor.cluster.facts import ClusterFacts, Document
from sublet.doctor.cluster.parts import describe, moment
from sublet.doctor.finding import Finding, Unknown, ok, problem, some, unchecked, warning

SCHEDULERS = ("katalyst-scheduler", "koord-scheduler")
UNSEEN_S = 60.0
"""A scheduler looks at a new pod within moments; one that was never looked at for so long has none."""
PROFILE = "deploy/k8s/scheduler/profile.yaml"


def schedulers(facts: ClusterFacts) -> Finding:
    """Whether somebody schedules the pods of either name, and some node offers what they ask for."""
    if isinstance(facts.deployments, Unknown):
        return unchecked(facts.deployments)
    ours, pods = facts.workload("Deployment", "sublet-scheduler"), facts.scheduled_by_name
    if ours is not None and int((ours.get("status") or {}).get("readyReplicas") or 0) == 0:
        return problem("the chart's scheduler is not ready", describe(facts, "scheduler"))
    if isinstance(pods, Unknown):
        return unchecked(pods)
    return (
        _never_looked_at(pods, facts.now, served=ours is not None) or _asks_in_vain(facts, pods) or _placed(ours, pods)
    )


def _never_looked_at(pods: Sequence[Document], now: datetime, *, served: bool) -> Finding | None:
    for name in SCHEDULERS:
        unseen = sorted(_name(pod) for pod in pods if _scheduler(pod) == name and _unseen(pod, now))
        if unseen:
            chart = f"add {name} to scheduler.names" if served else "set scheduler.enabled=true"
            return problem(
                f"nobody schedules the pods of {name}: {some(unseen)} was not looked at for a minute",
                f"{chart}, or add {PROFILE} to your scheduler",
            )
    return None


def _asks_in_vain(facts: ClusterFacts, pods: Sequence[Document]) -> Finding | None:
    """Pods that wait for a reclaimed resource of a name that is on no Node: each dialect has its own."""
    if isinstance(facts.nodes, Unknown):
        return None
    offered = {name for node in facts.nodes for name in (node.get("status") or {}).get("allocatable") or ()}
    for pod in sorted(filter(_waits, pods), key=_name):
        if missing := sorted(names_asked_for(pod) - offered):
            kind = "batch" if missing[0] in BATCH_NAMES else "mid"
            fix = f"set settings.reporter.{kind}.enabled=true" if missing[0] in BATCH_NAMES | MID_NAMES else (
                "see the check of the node objects")  # fmt: skip
            return warning(f"{_name(pod)} waits for {missing[0]}, which no node offers", fix)
    return None


def _placed(ours: Document | None, pods: Sequence[Document]) -> Finding:
    if ours is not None:
        return ok("the chart's scheduler is ready")
    bound = {_scheduler(pod) for pod in pods if (pod.get("spec") or {}).get("nodeName")}
    if placed := [name for name in SCHEDULERS if name in bound]:
        return ok(f"a scheduler of the name {' and '.join(placed)} has placed pods")
    return unchecked(
        f"no pod names {' or '.join(SCHEDULERS)} yet: the chart brings a scheduler of both names (scheduler.enabled)"
    )


def _unseen(pod: Mapping[str, Any], now: datetime) -> bool:
    made = moment(pod["metadata"].get("creationTimestamp"))
    old = made is not None and (now - made).total_seconds() > UNSEEN_S
    # Any status of it: also "False, Unschedulable" is a scheduler's word.
    looked_at = any(one.get("type") == "PodScheduled" for one in (pod.get("status") or {}).get("conditions") or ())
    return _waits(pod) and old and not looked_at


def _waits(pod: Mapping[str, Any]) -> bool:
    """Whether a scheduler is to place it; one that its author holds back no scheduler may look at yet."""
    spec = pod.get("spec") or {}
    pending = (pod.get("status") or {}).get("phase") == "Pending"
    return pending and not spec.get("nodeName") and not spec.get("schedulingGates")


def _scheduler(pod: Mapping[str, Any]) -> str:
    return str((pod.get("spec") or {}).get("schedulerName"))


def _name(pod: Mapping[str, Any]) -> str:
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
