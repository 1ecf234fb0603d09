"""What the chart of deploy/k8s needs from the API server: the objects that it creates, the rights that it grants.
Pure.

The unit tests compare both with the rendered manifests.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from shared.core.api_kind import NODE_METRICS, NODE_SLOS

CORE, APPS, RBAC, POLICY = "", "apps", "rbac.authorization.k8s.io", "policy"
NODE_GROUP, CONFIG_GROUP = "node.katalyst.kubewharf.io", "config.katalyst.kubewharf.io"
ADMISSION, NODE_LEASES = "admissionregistration.k8s.io", "kube-node-lease"
OWN = "{namespace}"
"""Stands for the namespace of the installation."""
FOLLOWED, FOLLOWED_NAME = "{slo.namespace}", "{slo.name}"
"""Stand for the ConfigMap with Koordinator's strategies."""


@dataclass(frozen=True, slots=True, order=True)
class Right:
    """One verb on one resource; `*` is all of them, no namespace is the whole cluster."""

    verb: str
    group: str
    resource: str
    """With its subresource: `pods/eviction`."""
    namespace: str = ""
    name: str = ""

    def __str__(self) -> str:
        kind = ".".join(filter(None, (self.resource, self.group)))
        return f"{self.verb} {kind}{f' in {self.namespace}' if self.namespace else ''}"


@dataclass(frozen=True, slots=True)
class FollowedConfigMap:
    """The ConfigMap that central is told to follow."""

    namespace: str
    name: str


EVERYTHING = Right("*", "*", "*")

MADE: tuple[tuple[str, str, str], ...] = (
    (CORE, "namespaces", ""),
    (CORE, "serviceaccounts", OWN),
    (CORE, "configmaps", OWN),
    (CORE, "secrets", OWN),
    (CORE, "services", OWN),
    (APPS, "daemonsets", OWN),
    (APPS, "deployments", OWN),
    (APPS, "statefulsets", OWN),
    ("batch", "jobs", OWN),
    (POLICY, "poddisruptionbudgets", OWN),
    ("networking.k8s.io", "networkpolicies", OWN),
    ("coordination.k8s.io", "leases", OWN),
    ("scheduling.k8s.io", "priorityclasses", ""),
    (ADMISSION, "validatingadmissionpolicies", ""),
    (ADMISSION, "validatingadmissionpolicybindings", ""),
    (ADMISSION, "mutatingadmissionpolicies", ""),
    (ADMISSION, "mutatingadmissionpolicybindings", ""),
    ("apiextensions.k8s.io", "customresourcedefinitions", ""),
    (RBAC, "clusterroles", ""),
    (RBAC, "clusterrolebindings", ""),
    (RBAC, "roles", OWN),
    (RBAC, "rolebindings", OWN),
    (RBAC, "roles", NODE_LEASES),
    (RBAC, "rolebindings", NODE_LEASES),
    (RBAC, "rolebindings", "kube-system"),
)
"""Group, resource and namespace of every object of the chart."""

_Given = tuple[str, str, str, str, str]
_READ, _CNRS, _CNCS = "get list watch", "customnoderesources", "customnodeconfigs"
_CONFIGS = ("katalystcustomconfigs", "evictionconfigurations", "adminqosconfigurations")

GIVEN: Mapping[str, tuple[_Given, ...]] = {
    "sublet-node": (
        (CORE, "pods", _READ, "", ""),
        (CORE, "pods/eviction", "create", "", ""),
        (CORE, "nodes", "get patch", "", ""),
        (CORE, "nodes/status", "patch", "", ""),
        (NODE_GROUP, _CNRS, "get create patch", "", ""),
        (NODE_GROUP, f"{_CNRS}/status", "get create patch", "", ""),
        (NODE_METRICS.group, NODE_METRICS.plural, "get create", "", ""),
        (NODE_METRICS.group, f"{NODE_METRICS.plural}/status", "patch", "", ""),
        (APPS, "daemonsets", "get", OWN, "sublet-node"),
    ),
    "sublet-central": (
        (CORE, "pods", _READ, "", ""),
        (CORE, "pods/eviction", "create", "", ""),
        (CORE, "nodes", f"{_READ} patch", "", ""),
        (CORE, "nodes/status", "patch", "", ""),
        *((NODE_GROUP, f"{_CNRS}{part}", f"{_READ} create patch delete", "", "") for part in ("", "/status")),
        *((CONFIG_GROUP, f"{_CNCS}{part}", f"{_READ} create patch delete", "", "") for part in ("", "/status")),
        *((CONFIG_GROUP, kind, f"{_READ} patch delete", "", "") for kind in _CONFIGS),
        *((CONFIG_GROUP, f"{kind}/status", "patch", "", "") for kind in _CONFIGS),
        ("coordination.k8s.io", "leases", "create", OWN, ""),
        ("coordination.k8s.io", "leases", "get patch update", OWN, "sublet-central"),
        ("coordination.k8s.io", "leases", _READ, NODE_LEASES, ""),
        (CORE, "configmaps", _READ, OWN, "sublet-pauses"),
        ("authentication.k8s.io", "tokenreviews", "create", "", ""),
    ),
    "sublet-events": (("events.k8s.io", "events", "create", "", ""),),
}
"""Rights by ServiceAccount: group, resource, verbs, namespace, name."""

WEBHOOK, WEBHOOK_SECRET, WEBHOOK_CONFIGURATION = "sublet-webhook", "sublet-webhook-tls", "sublet-pod-profiles"
MADE_FOR_PROFILES = tuple((ADMISSION, f"{kind}webhookconfigurations", "") for kind in ("mutating", "validating"))
GIVEN_FOR_PROFILES: Mapping[str, tuple[_Given, ...]] = {
    WEBHOOK: (
        ("config.koordinator.sh", "clustercolocationprofiles", _READ, "", ""),
        ("config.koordinator.sh", "clustercolocationprofiles/status", "patch", "", ""),
        (CORE, "namespaces", _READ, "", ""),
        ("scheduling.k8s.io", "priorityclasses", _READ, "", ""),
    ),
}
"""What the chart gives beside, with profiles.enabled."""
GIVEN_FOR_WEBHOOK: Mapping[str, tuple[_Given, ...]] = {
    WEBHOOK: (
        *((group, kind, "get patch", "", WEBHOOK_CONFIGURATION) for group, kind, _ in MADE_FOR_PROFILES),
        (CORE, "secrets", "create", OWN, ""),
        (CORE, "secrets", "get patch", OWN, WEBHOOK_SECRET),
        ("coordination.k8s.io", "leases", "create", OWN, ""),
        ("coordination.k8s.io", "leases", "get patch update", OWN, WEBHOOK),
    ),
}
"""With profiles.enabled or slo.enabled."""

MADE_FOR_SLO = ((RBAC, "roles", FOLLOWED), (RBAC, "rolebindings", FOLLOWED))
GIVEN_FOR_SLO: Mapping[str, tuple[_Given, ...]] = {
    "sublet-central": (
        (CORE, "configmaps", _READ, FOLLOWED, FOLLOWED_NAME),
        ("events.k8s.io", "events", "create", FOLLOWED, ""),
        (NODE_SLOS.group, NODE_SLOS.plural, f"{_READ} create patch delete", "", ""),
    ),
}
"""What the chart makes and gives beside, with slo.enabled."""


def to_install(namespace: str, *, profiles: bool, slo: FollowedConfigMap | None) -> list[Right]:
    """Rights that installing or upgrading takes, without those that must be handed on."""
    webhooks = MADE_FOR_PROFILES if profiles else MADE_FOR_PROFILES[1:] if slo else ()
    made = (*MADE, *webhooks, *(MADE_FOR_SLO if slo else ()))
    return [
        Right(verb, group, resource, where.format(namespace=namespace, slo=slo))
        for group, resource, where in made
        for verb in ("create", "patch")
    ]


def accounts(*, profiles: bool, slo: FollowedConfigMap | None) -> list[str]:
    """The ServiceAccounts that the chart makes."""
    return [*GIVEN, *(GIVEN_FOR_WEBHOOK if profiles or slo else ())]


def of_account(account: str, namespace: str, *, profiles: bool, slo: FollowedConfigMap | None) -> list[Right]:
    """What a ServiceAccount of Sublet has once it is installed."""
    given = [*GIVEN.get(account, ()), *GIVEN_FOR_WEBHOOK.get(account, ())]
    given += [
        *(GIVEN_FOR_PROFILES.get(account, ()) if profiles else ()),
        *(GIVEN_FOR_SLO.get(account, ()) if slo else ()),
    ]
    return list(_spelled(given, namespace, slo))


def to_hand_on(namespace: str, *, profiles: bool, slo: FollowedConfigMap | None) -> list[Right]:
    """Rights that the chart gives away: its user needs each of them, or `escalate`; a foreign role takes `bind`."""
    return sorted({
        right
        for account in accounts(profiles=profiles, slo=slo)
        for right in of_account(account, namespace, profiles=profiles, slo=slo)
    })  # fmt: skip


ESCALATE = Right("escalate", RBAC, "clusterroles")
BIND = Right("bind", RBAC, "clusterroles")


def _spelled(given: Iterable[_Given], namespace: str, slo: FollowedConfigMap | None) -> Iterator[Right]:
    for group, resource, verbs, where, name in given:
        for verb in verbs.split():
            yield Right(verb, group, resource, where.format(namespace=namespace, slo=slo), name.format(slo=slo))
