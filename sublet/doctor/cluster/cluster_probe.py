"""Collects the facts of a cluster from its API server. Nothing is written: reviews and dry runs leave no trace."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from services.central.core.profiles.review import ANSWERED, CHECK_ANNOTATION
from shared.adapters.kube.client import Document, Kube, KubeError
from shared.core.api_kind import CNRS, LEASES, NODES, PODS
from shared.errors import SubletError
from shared.ports import Clock
from sublet.doctor.cluster.facts import ClusterFacts, applies_profiles, followed_config_map
from sublet.doctor.cluster.rights import (
    BIND,
    ESCALATE,
    EVERYTHING,
    WEBHOOK,
    WEBHOOK_CONFIGURATION,
    WEBHOOK_SECRET,
    FollowedConfigMap,
    Right,
    accounts,
    of_account,
    to_hand_on,
    to_install,
)
from sublet.doctor.cluster.scheduling import SCHEDULERS
from sublet.doctor.finding import Known, Unknown

# A doctor must not be a load of its own: some of these lists are large.
AT_ONCE = 8
MOST_KUBELETS = 20
"""Nodes whose kubelet is asked: the nodes of a pool are alike, and each answer goes through the API server."""
FORBIDDEN, NOT_FOUND = 403, 404
REVIEWS = "/apis/authorization.k8s.io/v1"
KUBELET_READ = Right("get", "", "nodes/proxy")
"""What reading a kubelet's configuration through the API server takes. The user's own right; Sublet never has it."""

_HELD = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}, "runAsNonRoot": True,
         "seccompProfile": {"type": "RuntimeDefault"}}  # fmt: skip
CHECK_POD: Mapping[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"generateName": "sublet-doctor-", "annotations": {CHECK_ANNOTATION: ""}},
    "spec": {
        "automountServiceAccountToken": False,
        "containers": [{"name": "none", "image": "none", "securityContext": _HELD}],
    },
}
"""Never runs; it is held to what the strictest namespace asks for, so that nobody else refuses it."""

T = TypeVar("T")


class KubeProbe:
    """A cluster by its API server."""

    def __init__(self, kube: Kube, clock: Clock, server: str, namespace: str) -> None:
        self._kube, self._clock, self._server, self._namespace = kube, clock, server, namespace
        self._slots = asyncio.Semaphore(AT_ONCE)

    async def facts(self) -> ClusterFacts:
        """See `ClusterProbe`. When not even the version can be had nothing else is asked."""
        version = await _known(self._kube.get("/version"))
        if isinstance(version, Unknown):
            return self._nothing(version)
        apps, policies = "/apis/apps/v1", "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
        own = f"{apps}/namespaces/{self._namespace}"
        lists = await asyncio.gather(
            self._items("/apis/apiextensions.k8s.io/v1/customresourcedefinitions"),
            self._items(policies),
            self._items(f"{apps}/daemonsets"),
            self._items(f"{own}/deployments"),
            self._items(f"{own}/statefulsets"),
            self._items(NODES.collection()),
            self._items(CNRS.collection()),
            self._scheduled_by_name(),
        )
        kinds, policy_list, daemon_sets, deployments, stateful_sets, nodes, node_objects, pods = lists
        own_deployments = {} if isinstance(deployments, Unknown) else {_name(one): one for one in deployments}
        profiles = applies_profiles(own_deployments.get(WEBHOOK))
        slo = followed_config_map(own_deployments.get("sublet-central"))
        may = await _known(self._may(slo))
        admission_v1, here = "/apis/admissionregistration.k8s.io/v1", f"namespaces/{self._namespace}"
        return ClusterFacts(
            server=self._server,
            namespace=self._namespace,
            now=self._clock.wall(),
            version=version,
            may=may,
            accounts_may=await _known(self._accounts_may(slo, profiles=profiles)),
            admission=await _known(self._admission()),
            kinds=kinds,
            policies=policy_list if isinstance(policy_list, Unknown) else frozenset(map(_name, policy_list)),
            own_namespace=await _known(self._one(f"/api/v1/namespaces/{self._namespace}")),
            daemon_sets=daemon_sets,
            deployments=deployments,
            stateful_sets=stateful_sets,
            bus_passwords=await self._secret(stateful_sets, _passwords_name),
            bus_certificate=await self._secret(stateful_sets, _certificate_name),
            webhook_certificate=await _known(self._one(f"/api/v1/{here}/secrets/{WEBHOOK_SECRET}")),
            webhook_configuration=await _known(
                self._one(f"{admission_v1}/{_configurations(profiles)}/{WEBHOOK_CONFIGURATION}")
            ),
            webhook_endpoints=await self._items(
                f"/apis/discovery.k8s.io/v1/{here}/endpointslices",
                labelSelector=f"kubernetes.io/service-name={WEBHOOK}",
            ),
            webhook_answers=await _known(self._webhook_answers()) if profiles else False,
            lease=await _known(self._one(LEASES.path("sublet-central", self._namespace))),
            nodes=nodes,
            node_objects=node_objects,
            scheduled_by_name=pods,
            kubelets=await self._kubelets(nodes, may),
        )

    async def _items(self, path: str, **query: object) -> Known[Sequence[Document]]:
        async with self._slots:
            found = await _known(self._kube.list(path, **query))
        return found if isinstance(found, Unknown) else list(found.get("items") or ())

    async def _scheduled_by_name(self) -> Known[Sequence[Document]]:
        """A field selector takes one name at a time."""
        found: list[Document] = []
        for name in SCHEDULERS:
            pods = await self._items(PODS.collection(), fieldSelector=f"spec.schedulerName={name}")
            if isinstance(pods, Unknown):
                return pods
            found += pods
        return found

    async def _one(self, path: str) -> Document | None:
        try:
            return await self._kube.get(path)
        except KubeError as error:
            if error.status == NOT_FOUND:
                return None
            raise

    async def _secret(
        self, stateful_sets: Known[Sequence[Document]], name_of: Callable[[Document], str]
    ) -> Known[Document | None]:
        """A Secret that the hub names; the user's own right, and nothing of it is told but what is wrong with it."""
        if isinstance(stateful_sets, Unknown):
            return stateful_sets
        hub = [one for one in stateful_sets if _name(one) == "sublet-bus"]
        name = name_of(hub[0]["spec"]["template"]["spec"]) if hub and "template" in hub[0].get("spec", {}) else ""
        if not name:
            return None
        async with self._slots:
            return await _known(self._one(f"/api/v1/namespaces/{self._namespace}/secrets/{name}"))

    async def _webhook_answers(self) -> bool:
        """Create a pod as a dry run, of which nothing stays: its answer shows whether the webhook was asked."""
        async with self._slots:
            found = await self._kube.call(
                "POST", "/api/v1/namespaces/default/pods", body=CHECK_POD, query={"dryRun": "All"}
            )
        return bool((found["metadata"].get("annotations") or {}).get(CHECK_ANNOTATION) == ANSWERED)

    async def _admission(self) -> dict[str, frozenset[str]]:
        """What each version of the admission group serves."""
        group = "/apis/admissionregistration.k8s.io"
        versions = [one["version"] for one in (await self._kube.get(group))["versions"]]
        served = await asyncio.gather(*(self._kube.get(f"{group}/{version}") for version in versions))
        return {
            version: frozenset(one["name"] for one in found["resources"])
            for version, found in zip(versions, served, strict=True)
        }

    async def _may(self, slo: FollowedConfigMap | None) -> dict[Right, bool]:
        """What this user may, of what an installation needs; who may everything is asked one question."""
        wanted = to_install(self._namespace, profiles=True, slo=slo)
        wanted += to_hand_on(self._namespace, profiles=True, slo=slo)
        wanted += [ESCALATE, BIND, KUBELET_READ]
        if await self._allowed(EVERYTHING, None):
            return dict.fromkeys(wanted, True)
        return await self._each(wanted, None)

    async def _accounts_may(self, slo: FollowedConfigMap | None, *, profiles: bool) -> dict[str, dict[Right, bool]]:
        found = {}
        for account in accounts(profiles=profiles, slo=slo):
            wanted = of_account(account, self._namespace, profiles=profiles, slo=slo)
            found[account] = await self._each(wanted, account)
        return found

    async def _each(self, rights: Iterable[Right], account: str | None) -> dict[Right, bool]:
        wanted = list(rights)
        allowed = await asyncio.gather(*(self._allowed(right, account) for right in wanted))
        return dict(zip(wanted, allowed, strict=True))

    async def _allowed(self, right: Right, account: str | None) -> bool:
        """Ask whether this user, or a ServiceAccount, may do something."""
        resource, _, sub = right.resource.partition("/")
        asked = {"verb": right.verb, "group": right.group, "resource": resource, "subresource": sub,
                 "namespace": right.namespace, "name": right.name}  # fmt: skip
        kind, spec = "SelfSubjectAccessReview", {"resourceAttributes": {k: v for k, v in asked.items() if v}}
        if account is not None:
            kind, spec = "SubjectAccessReview", spec | _user(account, self._namespace)
        body = {"apiVersion": "authorization.k8s.io/v1", "kind": kind, "spec": spec}
        async with self._slots:
            answer = await self._kube.call("POST", f"{REVIEWS}/{kind.lower()}s", body=body)
        return bool((answer.get("status") or {}).get("allowed"))

    async def _kubelets(
        self, nodes: Known[Sequence[Document]], may: Known[Mapping[Right, bool]]
    ) -> Known[dict[str, Known[Document]]]:
        if isinstance(nodes, Unknown):
            return nodes
        if isinstance(may, Unknown):
            return may
        if not may.get(KUBELET_READ):
            return Unknown(f"you may not {KUBELET_READ}, which reading kubelets' configuration takes")
        asked = sorted(map(_name, nodes))[:MOST_KUBELETS]
        told = await asyncio.gather(*(_known(self._kubelet(node)) for node in asked))
        return dict(zip(asked, told, strict=True))

    async def _kubelet(self, node: str) -> Document:
        async with self._slots:
            found = await self._kube.get(f"{NODES.path(node)}/proxy/configz")
        config: Document = found.get("kubeletconfig") or {}
        return config

    def _nothing(self, why: Unknown) -> ClusterFacts:
        """Facts of which none is known."""
        away = Unknown("the API server does not answer")
        return ClusterFacts(
            server=self._server, namespace=self._namespace, now=self._clock.wall(), version=why, may=away,
            accounts_may=away, admission=away, kinds=away, policies=away, own_namespace=away, daemon_sets=away,
            deployments=away, stateful_sets=away, lease=away, nodes=away, node_objects=away, scheduled_by_name=away,
            kubelets=away, bus_passwords=away, bus_certificate=away,
            webhook_certificate=away, webhook_configuration=away, webhook_endpoints=away,
            webhook_answers=away)  # fmt: skip


async def _known(answer: Awaitable[T]) -> Known[T]:
    """What is answered, or why nothing is."""
    try:
        return await answer
    except KubeError as error:
        _, cannot, what = str(error).partition(" cannot ")
        return Unknown(f"you may not {what}" if error.status == FORBIDDEN and cannot else str(error))
    except (SubletError, KeyError, TypeError) as error:
        return Unknown(str(error))


def _user(account: str, namespace: str) -> dict[str, Any]:
    groups = ["system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated"]
    return {"user": f"system:serviceaccount:{namespace}:{account}", "groups": groups}


def _configurations(profiles: bool) -> str:
    return f"{'mutating' if profiles else 'validating'}webhookconfigurations"


def _passwords_name(spec: Document) -> str:
    words = {one["name"]: one.get("valueFrom") or {} for part in spec["containers"] for one in part.get("env") or ()}
    return str((words.get("CENTRAL_PASSWORD", {}).get("secretKeyRef") or {}).get("name") or "")


def _certificate_name(spec: Document) -> str:
    volumes = {one["name"]: one for one in spec.get("volumes") or ()}
    return str((volumes.get("tls", {}).get("secret") or {}).get("secretName") or "")


def _name(document: Mapping[str, Any]) -> str:
    return str(document["metadata"]["name"])
