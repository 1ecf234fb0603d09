"""Guards refuse an eviction: of pods that must never be evicted, and of pods that must not be evicted now. Each
refusal has a reason.

A guard that cannot be evaluated refuses (docs/facts/safety-rules.md#rule-1-absent-is-not-zero).
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Literal

from services.evictor.core.arbiter.budgets import BudgetGuard
from services.evictor.core.arbiter.confirmation import HoldReason
from services.evictor.core.plugin import Candidate
from shared.contracts.pod import Pod
from shared.core.cgroups.kubelet_layout import CONFIG_MIRROR, CONFIG_PREFIX, is_mirror
from shared.core.pods.qos import CRITICAL_PRIORITY

CONFIG_SOURCE = f"{CONFIG_PREFIX}source"
DAEMON_SET = "DaemonSet"

Never = Literal["system_cores", "static_pod", "mirror_pod", "critical_priority", "protected_namespace", "daemonset_pod"]
NotNow = Literal[
    "finished", "terminating", "live_intent", "backing_off", "tenant_before_reclaimed", "another_soft_victim"
]
Bound = Literal["rate_limit", "burst"]
Closed = Literal["observe", "paused", "ledger_closed"]
Guard = Literal[Never, NotNow, BudgetGuard, Bound, Closed, HoldReason]


@dataclass(frozen=True, slots=True)
class Refusal:
    """A refusal: by a guard that spared a pod or, with an empty `pod`, by one that held back a plugin as a whole."""

    pod: str
    why: Guard
    uid: str = ""
    says: str = ""
    """The same as a sentence with the numbers."""


_TEXTS: dict[Guard, str] = {
    "system_cores": "a pod of system_cores is never evicted",
    "static_pod": "a static pod is never evicted: the kubelet would start it again at once",
    "mirror_pod": "a mirror pod is never evicted: it only shows a static one",
    "critical_priority": f"a pod of priority {{priority}} is never evicted; the bound is {CRITICAL_PRIORITY}",
    "protected_namespace": "no pod of the protected namespace {namespace} is ever evicted",
    "daemonset_pod": "a pod of a DaemonSet is never evicted: it would be put back on this node at once",
    "finished": "the pod has finished ({phase}) and holds nothing",
    "terminating": "the pod is already on its way out",
    "live_intent": "an eviction of this pod is under way",
    "backing_off": "evicting this pod has failed a moment ago; it is tried again after a pause",
    "tenant_before_reclaimed": "a tenant's pod stays as long as a reclaimed pod can go or is on its way out",
    "another_soft_victim": "soft pressure takes one pod a round, and another one came first",
}


def spared_by(guard: Guard, pod: Pod) -> Refusal:
    """Return the refusal of a guard whose sentence needs only the pod."""
    says = _TEXTS[guard].format(priority=pod.priority, namespace=pod.namespace, phase=pod.phase)
    return Refusal(pod.key, guard, pod.uid, says)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the guards know besides the pod."""

    protected_namespaces: Collection[str] = ()
    live_uids: Collection[str] = ()
    """Pods with an eviction under way."""
    backing_off_uids: Collection[str] = ()
    """Pods whose eviction did not work a moment ago."""


def protection(annotations: Mapping[str, str], priority: int | None, *, system_cores: bool) -> Never | None:
    """Return why a pod with these fields may never be evicted, whatever the pressure; None if it may."""
    if system_cores:
        return "system_cores"
    # Kubelet names the source of each pod; without the annotation it came from the API server.
    if annotations.get(CONFIG_SOURCE, "api") != "api":
        return "static_pod"
    if CONFIG_MIRROR in annotations:
        return "mirror_pod"
    if priority is not None and priority >= CRITICAL_PRIORITY:
        return "critical_priority"
    return None


def never(pod: Pod, protected_namespaces: Collection[str]) -> Never | None:
    """Return why this pod is never evicted: `protection`, DaemonSets, and the namespaces of Sublet and of the
    cluster.

    Annotations count only in a mirror pod, which kubelet writes, because anyone who creates a pod may annotate it. For
    a reclaimed pod neither owner nor priority counts: its author chooses both, and could make it unevictable with them.
    """
    # Before the class is asked: it holds for reclaimed pods too, whose author does not choose the list.
    if pod.namespace in protected_namespaces:
        return "protected_namespace"
    from_kubelet = pod.annotations if is_mirror(pod) else {}
    system_cores = pod.qos == "system_cores"
    if pod.qos == "reclaimed_cores":
        return protection(from_kubelet, None, system_cores=system_cores)
    if pod.owner_kind == DAEMON_SET:
        return "daemonset_pod"
    return protection(from_kubelet, pod.priority, system_cores=system_cores)


def not_now(pod: Pod, around: Surroundings) -> NotNow | None:
    """Return why this pod is skipped in this round; None if no guard objects."""
    # A list of what may go and not of what may not: a phase that is not known spares the pod.
    if pod.phase not in ("Pending", "Running"):
        return "finished"
    # Before `terminating`: the reason that we know is the better answer to why it is spared.
    if pod.uid in around.live_uids:
        return "live_intent"
    if pod.terminating:
        return "terminating"
    if pod.uid in around.backing_off_uids:
        return "backing_off"
    return None


def allowed(
    candidates: Collection[Candidate], around: Surroundings
) -> tuple[tuple[Candidate, ...], tuple[Refusal, ...]]:
    """Return the candidates that every guard lets pass, in their order, and why the others were spared.

    Tenants first: a shared or dedicated pod is evicted only if no reclaimed candidate can be evicted and none is
    terminating, wherever the plugin ranked it (docs/facts/safety-rules.md#rule-3-tenants-first).
    """
    refusals: list[Refusal] = []
    able: list[Candidate] = []
    leaving = False  # a reclaimed pod on its way out may free enough, so no tenant goes before it is gone
    for candidate in candidates:
        pod = candidate.pod
        why = never(pod, around.protected_namespaces) or not_now(pod, around)
        if why is None:
            able.append(candidate)
            continue
        refusals.append(spared_by(why, pod))
        leaving |= pod.qos == "reclaimed_cores" and why in ("live_intent", "terminating")
    reclaimed = [c for c in able if c.pod.qos == "reclaimed_cores"]
    if reclaimed or leaving:
        refusals += [spared_by("tenant_before_reclaimed", c.pod) for c in able if c.pod.qos != "reclaimed_cores"]
        able = reclaimed
    return tuple(able), tuple(refusals)
