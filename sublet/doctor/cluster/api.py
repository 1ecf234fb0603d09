"""Checks of a cluster: its version, what it serves, who may do what. Pure."""

import re
from collections.abc import Mapping
from typing import Any

from shared.core.api_kind import NODE_METRICS, NODE_SLOS
from sublet.doctor.cluster.facts import ClusterFacts, Document
from sublet.doctor.cluster.rights import BIND, CONFIG_GROUP, ESCALATE, NODE_GROUP, to_hand_on, to_install
from sublet.doctor.finding import Finding, Unknown, ok, problem, some, unchecked, warning

OLDEST, NEWEST = (1, 30), (1, 35)
"""The versions that Sublet is made for (docs/kubernetes.md)."""
POLICIES = ("sublet-node-agent-evictions", "sublet-node-agent-own-node", "sublet-node-agent-pods",
            "sublet-node-fields", "sublet-pod-qos")  # fmt: skip
NOT_INSTALLED = "Sublet is not installed here"
CHART = "helm upgrade --install sublet deploy/k8s/chart"

_CONFIG_FIELDS = ("spec.config", "spec.nodeLabelSelector", "spec.priority", "spec.paused", "spec.updateStrategy",
                  "status.conditions", "status.currentHash", "status.observedGeneration")  # fmt: skip
KINDS: Mapping[str, tuple[str, ...]] = {
    f"customnoderesources.{NODE_GROUP}": (
        "spec.nodeResourceProperties", "spec.taints", "status.conditions", "status.resourceAllocatable",
        "status.resources", "status.topologyStatus", "status.topologyZone", "status.nodeMetricStatus"),
    f"customnodeconfigs.{CONFIG_GROUP}": ("status.katalystCustomConfigList", "status.serviceProfileConfigList"),
    f"katalystcustomconfigs.{CONFIG_GROUP}": (
        "spec.targetType", "spec.nodeLabelSelectorKey", "status.conditions", "status.invalidTargetConfigList"),
    f"evictionconfigurations.{CONFIG_GROUP}": _CONFIG_FIELDS,
    f"adminqosconfigurations.{CONFIG_GROUP}": _CONFIG_FIELDS,
    "clustercolocationprofiles.config.koordinator.sh": (
        "spec.namespaceSelector", "spec.selector", "spec.probability", "spec.qosClass", "spec.priorityClassName",
        "spec.labelSuffixes", "spec.patch", "status.conditions"),
    f"{NODE_METRICS.plural}.{NODE_METRICS.group}": (
        "spec.metricCollectPolicy", "status.updateTime", "status.nodeMetric", "status.podsMetric",
        "status.hostApplicationMetric"),
    f"{NODE_SLOS.plural}.{NODE_SLOS.group}": (
        "spec.resourceUsedThresholdWithBE", "spec.resourceQOSStrategy", "spec.cpuBurstStrategy", "spec.systemStrategy",
        "spec.hostApplications"),
    "katalystverticalpodautoscalers.autoscaling.katalyst.kubewharf.io": (
        "spec.targetRef", "spec.updatePolicy", "spec.resourcePolicy", "status.conditions"),
    "nodeovercommitconfigs.overcommit.katalyst.kubewharf.io": (
        "spec.nodeOvercommitSelectorVal", "spec.resourceOvercommitRatio", "status.matchedNodeList",
        "status.conditions"),
    "resourcerecommends.recommendation.katalyst.kubewharf.io": (
        "spec.targetRef", "spec.resourcePolicy", "status.conditions", "status.lastRecommendationTime",
        "status.observedGeneration", "status.recommendResources"),
    "serviceprofiledescriptors.workload.katalyst.kubewharf.io": (
        "spec.targetRef", "spec.baselinePercent", "spec.systemIndicator", "status.aggMetrics"),
    "tidenodepools.tide.katalyst.kubewharf.io": (
        "spec.nodeConfigs", "spec.evictStrategy", "spec.schedule", "status.reserveNodes", "status.tideNodes",
        "status.changing", "status.conditions"),
    "usagecheckpoints.recommendation.sublet.io": ("spec.usage",),
}  # fmt: skip
"""Kinds by name, with the fields that Sublet writes or reads: the API server drops what a kind does not declare."""


def minor_version(text: str) -> tuple[int, int] | None:
    """Major and minor of `v1.35.4`; None where it is no version."""
    found = re.match(r"v?(\d+)\.(\d+)", text)
    return (int(found[1]), int(found[2])) if found else None


def not_installed(facts: ClusterFacts) -> Finding | None:
    """The finding of a check of what is installed where nothing is, or where that is not known; else None."""
    if isinstance(facts.installed, Unknown):
        return unchecked(facts.installed)
    return None if facts.installed else unchecked(NOT_INSTALLED)


def api_server(facts: ClusterFacts) -> Finding:
    """Whether it answers, and whether Sublet is made for it."""
    if isinstance(facts.version, Unknown):
        return problem(facts.version.why, "name the cluster: --kubeconfig FILE, or KUBECONFIG; is it up?")
    text = str(facts.version.get("gitVersion") or "")
    version = minor_version(text)
    if version is None:
        return unchecked(f"{facts.server} says no version: {text!r}")
    if version < OLDEST:
        return problem(
            f"{text} is older than 1.30: it has no ValidatingAdmissionPolicy v1", "upgrade the cluster to 1.30 or newer"
        )
    if version > NEWEST:
        return warning(
            f"{text} is newer than 1.35, the last on which Sublet was tried",
            "look for a later version of Sublet, or try this one on a spare cluster first",
        )
    return ok(f"{text} at {facts.server}")


def may_install(facts: ClusterFacts) -> Finding:
    """Whether this user may make what the chart makes, and hand on the rights that it gives."""
    if isinstance(facts.may, Unknown):
        return unchecked(facts.may)
    wanted = to_install(facts.namespace, profiles=facts.profiles, slo=facts.slo)
    missing = [right for right in wanted if not facts.may.get(right)]
    if missing:
        judged = warning if facts.installed is True else problem  # who only looks at what is there need not change it
        return judged(
            f"you may not {some([str(right) for right in missing])}",
            "let somebody with cluster-admin install or upgrade it, or be given these rights",
        )
    given = to_hand_on(facts.namespace, profiles=facts.profiles, slo=facts.slo)
    held = [right for right in given if not facts.may.get(right)]
    if held and not facts.may.get(ESCALATE):
        return problem(
            f"you may make roles, but not give away what you may not: {some([str(r) for r in held])}",
            f"let somebody with cluster-admin install it, or be given: {ESCALATE}",
        )
    if not facts.may.get(BIND):
        return warning(
            "you may not bind system:kube-scheduler to the chart's scheduler",
            f"set scheduler.enabled=false, or be given: {BIND}",
        )
    return ok("you may make all that the chart makes")


def agents_rights(facts: ClusterFacts) -> Finding:
    """Whether Sublet's accounts have what the chart gives them."""
    if (absent := not_installed(facts)) is not None:
        return absent
    if isinstance(facts.accounts_may, Unknown):
        return unchecked(facts.accounts_may, "ask as somebody who may create subjectaccessreviews")
    missing = [
        (account, right) for account, rights in facts.accounts_may.items() for right, may in rights.items() if not may
    ]
    if missing:
        said = some([f"{account} may not {right}" for account, right in missing])
        return problem(said, f"give the roles again: {CHART} -n {facts.namespace}")
    return ok(f"{some(sorted(facts.accounts_may), len(facts.accounts_may))} may do their work")


def validating(facts: ClusterFacts) -> Finding:
    """ValidatingAdmissionPolicy: without it a pod may give itself any class."""
    if isinstance(facts.admission, Unknown):
        return unchecked(facts.admission)
    if "validatingadmissionpolicies" not in facts.admission.get("v1", ()):
        return problem(
            "ValidatingAdmissionPolicy v1 is not served",
            "upgrade to 1.30 or newer, or take it out of the API server's --runtime-config",
        )
    if facts.installed is False:
        return ok("ValidatingAdmissionPolicy v1 is served")
    if isinstance(facts.policies, Unknown):
        return unchecked(facts.policies)
    if isinstance(facts.installed, Unknown):
        return unchecked(facts.installed)
    missing = [name for name in POLICIES if name not in facts.policies]
    if missing:
        return problem(
            f"policies are not there: {some(missing)}; nothing holds an agent to its own node",
            f"{CHART} -n {facts.namespace} --set admission.enabled=true",
        )
    return ok(f"ValidatingAdmissionPolicy v1, {len(POLICIES)} policies of Sublet")


def mutating(facts: ClusterFacts) -> Finding:
    """MutatingAdmissionPolicy, which rewrites the older names of reclaimed resources."""
    if isinstance(facts.admission, Unknown):
        return unchecked(facts.admission)
    served = [v for v in ("v1", "v1beta1") if "mutatingadmissionpolicies" in facts.admission.get(v, ())]
    if served:
        return ok(f"MutatingAdmissionPolicy {served[0]} is served")
    return warning(
        "no MutatingAdmissionPolicy: pods that ask for katalyst.kubewharf.io/reclaimed_* are refused",
        "ask for resource.katalyst.kubewharf.io/reclaimed_*, or --feature-gates=MutatingAdmissionPolicy=true"
        " --runtime-config=admissionregistration.k8s.io/v1beta1",
    )


def kinds(facts: ClusterFacts) -> Finding:
    """The custom resources, with the fields that this version of Sublet uses."""
    if isinstance(facts.kinds, Unknown):
        return unchecked(facts.kinds)
    there = {one["metadata"]["name"]: one for one in facts.kinds}
    missing = [name for name in KINDS if name not in there]
    apply = "kubectl apply --server-side --force-conflicts -k deploy/k8s/crds"
    if len(missing) == len(KINDS) and facts.installed is False:
        return unchecked("the kinds are not there yet: the chart brings them")
    if missing:
        return problem(f"kinds are not there: {some(missing)}", apply)
    old = [f"{name} {lack}" for name, fields in KINDS.items() if (lack := _lacks(there[name], fields))]
    if old:
        return problem(f"of another version: {some(old)}", f"{apply} --force-conflicts")
    return ok(f"{len(KINDS)} kinds, v1alpha1, with all fields")


def _lacks(kind: Document, fields: tuple[str, ...]) -> str:
    """What a kind is short of; empty for nothing."""
    version = next((one for one in kind["spec"]["versions"] if one["name"] == "v1alpha1" and one.get("served")), None)
    if version is None:
        return "does not serve v1alpha1"
    has_status = any(field.startswith("status.") for field in fields)
    if has_status and "status" not in (version.get("subresources") or {}):
        return "has no status subresource"
    schema = (version.get("schema") or {}).get("openAPIV3Schema") or {}
    missing = [field for field in fields if not _declared(schema, field.split("."))]
    return f"does not know {some(missing)}" if missing else ""


def _declared(schema: Mapping[str, Any], steps: list[str]) -> bool:
    # From there on the API server keeps whatever it is given.
    if not steps or schema.get("x-kubernetes-preserve-unknown-fields"):
        return True
    below = (schema.get("properties") or {}).get(steps[0])
    return below is not None and _declared(below, steps[1:])
