"""`uninstall_from_cluster` removes everything that Sublet has put into a cluster; it may be repeated at any time.

Rule: docs/facts/safety-rules.md#rule-10-stopping-is-safe.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from shared.adapters.kube.client import Kube, KubeError
from shared.adapters.kube.node import remove_offer
from shared.adapters.kube.taints import KubeTaints
from shared.contracts.kube.taint import TAINT_PREFIX
from shared.core.api_kind import (
    ADMIN_QOS_CONFIGS,
    CNCS,
    CNRS,
    EVICTION_CONFIGS,
    KCCS,
    NODE_METRICS,
    NODE_SLOS,
    NODES,
    PODS,
    ApiKind,
)
from shared.core.pods.extended_resources import own_names
from shared.errors import Unavailable
from shared.ports import Clock
from sublet.cluster.leftovers.parts import PARTS, clear_parts

WRITERS = {
    "node": ("agents", "DaemonSet sublet-node"),
    "central": ("centrals", "Deployment sublet-central"),
    "webhook": ("webhooks", "Deployment sublet-webhook"),
    "extender": ("extenders", "Deployment sublet-extender"),
}
"""Components whose pods would write everything again: what messages call them, and the workload that makes them."""
FINALIZERS = ("kcc.katalyst.kubewharf.io/", "kcct.katalyst.kubewharf.io/")
"""Finalizers of central, which is not there any more to take them away."""
MANAGER = "sublet-uninstall"
SLO_MANAGERS = {NODE_METRICS: "sublet-node-metric", NODE_SLOS: "sublet-central"}
"""Koordinator's objects of a node, and by whom alone those are written that go."""
POLL_S = 2.0
NOT_FOUND = 404
GIVE_BACK = "sublet-give-back"
"""The DaemonSet whose pods give nodes back: the agents may not have known that they end for good."""


@dataclass(frozen=True, slots=True)
class _Patience:
    """How long the uninstall waits in all, over all that it waits for."""

    clock: Clock
    end_s: float
    wait_s: float

    @property
    def over(self) -> bool:
        """Whether the time is up."""
        return self.clock.monotonic() >= self.end_s


async def uninstall_from_cluster(
    kube: Kube, clock: Clock, namespace: str, *, wait_s: float, say: Callable[[str], None]
) -> None:
    """Wait for the end of all that write, and until every node that is ready has been given back what it had; then
    clean Nodes, objects of nodes, configuration objects, and whatever the parts of the cluster's half have left.

    Raises:
        Unavailable: one of them still runs, or the API server refuses or cannot be reached; what is done stays done.
    """
    patience = _Patience(clock, clock.monotonic() + wait_s, wait_s)
    for component in WRITERS:
        await _gone(kube, namespace, component, patience)
    await _given_back(kube, namespace, patience, say)
    await clear_cluster(kube, namespace, say)


async def clear_cluster(kube: Kube, namespace: str, say: Callable[[str], None]) -> None:
    """Take everything away that Sublet has put there, without a look at who still runs.

    Raises:
        Unavailable: the API server refuses or cannot be reached; what is done stays done.
    """
    try:
        for node in (await kube.list(NODES.collection()))["items"]:
            await _clean(kube, node, say)
        for kind in (CNRS, CNCS):
            for name in await _names(kube, kind):
                await _delete(kube, kind.path(name))
                say(f"{kind.plural}/{name} deleted")
        for kind in SLO_MANAGERS:
            for one in await _all(kube, kind):
                await _delete_own(kube, kind, one, say)
        await clear_parts(kube, namespace, PARTS, say)
        for kind in (KCCS, EVICTION_CONFIGS, ADMIN_QOS_CONFIGS):
            await _let_go(kube, kind)
    except KubeError as error:
        raise Unavailable(f"uninstall: {error}; run it again", reason=error.reason) from error


async def _gone(kube: Kube, namespace: str, component: str, patience: _Patience) -> None:
    labels = f"app.kubernetes.io/name=sublet,app.kubernetes.io/component={component}"
    while True:
        try:
            running = (await kube.list(PODS.collection(namespace), labelSelector=labels))["items"]
        except KubeError as error:
            raise Unavailable(f"uninstall: {error}", reason=error.reason) from error
        if not running:
            return
        if patience.over:
            who, made_by = WRITERS[component]
            names = ", ".join(sorted(pod["metadata"]["name"] for pod in running))
            raise Unavailable(
                f"uninstall: {who} still run after {patience.wait_s:g} s in {namespace}: {names}; delete {made_by}",
                reason="agents",
            )
        await patience.clock.sleep(POLL_S)


async def _given_back(kube: Kube, namespace: str, patience: _Patience, say: Callable[[str], None]) -> None:
    path = f"/apis/apps/v1/namespaces/{namespace}/daemonsets/{GIVE_BACK}"
    while True:
        try:
            late = _late(await kube.get(path))
            away = await _away(kube, namespace) if late else set()
        except KubeError as error:
            if error.status != NOT_FOUND:
                raise Unavailable(f"uninstall: {error}", reason=error.reason) from error
            say(f"no DaemonSet {GIVE_BACK}: pods may keep limits until `kubectl apply -k deploy/k8s/uninstall`")
            return
        if late <= len(away):
            for name in sorted(away):
                say(f"nodes/{name}: not ready, its pods keep their limits until it is booted anew")
            return
        if patience.over:
            pods = f"kubectl -n {namespace} get pods -l app.kubernetes.io/component=give-back -o wide"
            raise Unavailable(f"uninstall: {late} nodes are not given back yet: {pods}; run it again", reason="agents")
        await patience.clock.sleep(POLL_S)


def _late(daemonset: Mapping[str, Any]) -> int:
    """How many of its pods are not ready; one where it has not been looked at yet."""
    meta, status = daemonset["metadata"], daemonset.get("status") or {}
    if status.get("observedGeneration") != meta.get("generation"):
        return 1
    return int(status.get("desiredNumberScheduled") or 0) - int(status.get("numberReady") or 0)


async def _away(kube: Kube, namespace: str) -> set[str]:
    """The nodes without a word from their kubelet that have such a pod."""
    labels = "app.kubernetes.io/name=sublet,app.kubernetes.io/component=give-back"
    pods = (await kube.list(PODS.collection(namespace), labelSelector=labels))["items"]
    nodes = (await kube.list(NODES.collection()))["items"]
    silent = {node["metadata"]["name"] for node in nodes if not _is_ready(node)}
    return silent & {(pod.get("spec") or {}).get("nodeName") for pod in pods if not _is_ready(pod)}


def _is_ready(one: Mapping[str, Any]) -> bool:
    conditions = (one.get("status") or {}).get("conditions") or ()
    return any(c.get("type") == "Ready" and c.get("status") == "True" for c in conditions)


async def _clean(kube: Kube, node: dict[str, Any], say: Callable[[str], None]) -> None:
    name, status = node["metadata"]["name"], node.get("status") or {}
    ours = own_names(node)
    if any(ours & (status.get(part) or {}).keys() for part in ("capacity", "allocatable")):
        await remove_offer(kube, name, ours)
        say(f"nodes/{name}: reclaimed resources withdrawn")
    taints = (node.get("spec") or {}).get("taints") or ()
    if any(taint["key"].startswith(TAINT_PREFIX) for taint in taints):
        await KubeTaints(kube, name).write(())
        say(f"nodes/{name}: taints removed")


async def _delete_own(kube: Kube, kind: ApiKind, one: Mapping[str, Any], say: Callable[[str], None]) -> None:
    """Delete an object that nobody but Sublet has written; Koordinator writes the spec of those that it wants."""
    meta = one["metadata"]
    if {row.get("manager") for row in meta.get("managedFields") or ()} == {SLO_MANAGERS[kind]}:
        await _delete(kube, kind.path(meta["name"]))
        say(f"{kind.plural}/{meta['name']} deleted")


async def _names(kube: Kube, kind: ApiKind) -> Iterable[str]:
    return [one["metadata"]["name"] for one in await _all(kube, kind)]


async def _all(kube: Kube, kind: ApiKind) -> list[dict[str, Any]]:
    """Nothing where the cluster does not have the kind any more."""
    try:
        return list((await kube.list(kind.collection()))["items"])
    except KubeError as error:
        if error.status == NOT_FOUND:
            return []
        raise


async def _delete(kube: Kube, path: str) -> None:
    try:
        await kube.delete(path)
    except KubeError as error:
        if error.status != NOT_FOUND:
            raise


async def _let_go(kube: Kube, kind: ApiKind) -> None:
    for one in await _all(kube, kind):
        meta = one["metadata"]
        held = meta.get("finalizers") or []
        others = [name for name in held if not name.startswith(FINALIZERS)]
        if others != held:
            change = {"metadata": {"resourceVersion": meta["resourceVersion"], "finalizers": others or None}}
            await kube.merge(kind.path(meta["name"], meta["namespace"]), change, manager=MANAGER)
