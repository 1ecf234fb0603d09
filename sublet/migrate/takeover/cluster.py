"""`KubeHandover` hands nodes over through the API server; it changes nothing else."""

from collections.abc import Mapping
from typing import Any

from shared.adapters.kube.client import Document, Kube, KubeError
from shared.core.api_kind import ADMIN_QOS_CONFIGS, CNRS, KCCS, NODES, PODS
from shared.errors import Refused, Unavailable
from sublet.migrate.plan.agent_arguments import is_agent
from sublet.migrate.plan.objects import objects_of, words_of
from sublet.migrate.takeover.beside import BesideFacts
from sublet.migrate.takeover.node_view import NodeDocuments, NodeView, view_of
from sublet.migrate.takeover.origin import Origin
from sublet.migrate.takeover.own_mode import CENTRAL, NODE_AGENT, NODE_SETTINGS, Installed, own_mode
from sublet.migrate.takeover.preparations import ClusterDocuments, ObjectChange

MANAGER = "sublet-migrate"
NOT_FOUND = 404
DAEMON_SETS = "/apis/apps/v1/daemonsets"
NODE_SLOS = "/apis/slo.koordinator.sh/v1alpha1/nodeslos"
CONFIG_MAP = "slo-controller-config"


class KubeHandover:
    """See `HandoverCluster`."""

    def __init__(self, kube: Kube, origin: Origin, namespace: str) -> None:
        self._kube, self._origin, self._namespace = kube, origin, namespace

    async def documents(self) -> ClusterDocuments:
        """See `HandoverCluster`."""
        sets = await self._items(DAEMON_SETS)
        named = {"name": NODE_AGENT, "namespace": self._namespace}
        own = [one for one in sets if named.items() <= words_of(one, "metadata").items()]
        if not own:
            raise Refused(
                f"Sublet is not installed in the namespace {self._namespace}: helm install sublet … -f values.yaml "
                f"(sublet migrate {self._origin.system} plan --values values.yaml), or name it with --namespace",
                reason="not_installed",
            )
        maps: list[Document] = []
        if self._origin.beside:
            maps = await self._items("/api/v1/configmaps", fieldSelector=f"metadata.name={CONFIG_MAP}")
        return ClusterDocuments(
            self._namespace,
            await self._items(KCCS.collection()),
            await self._items(ADMIN_QOS_CONFIGS.collection()),
            [one for one in sets if self._is_theirs(one)],
            maps[0] if maps else None,
            own_mode(await self._installed(own[0])),
        )

    async def beside(self, values: str) -> BesideFacts:
        """Both agents, all over the cluster.

        Raises:
            Unavailable: no answer, or no right to read.
        """
        own = await self._one(f"/apis/apps/v1/namespaces/{self._namespace}/daemonsets/{NODE_AGENT}")
        return BesideFacts(
            self._origin,
            self._namespace,
            values,
            own is not None,
            await self.hosts(),
            await self._items(NODES.collection()),
            await self._items(CNRS.collection()),
            await self._items(ADMIN_QOS_CONFIGS.collection()),
        )

    async def nodes(self) -> Mapping[str, Mapping[str, str]]:
        """See `HandoverCluster`."""
        found = await self._items(NODES.collection())
        return {words_of(one, "metadata").get("name", ""): words_of(one, "metadata", "labels") for one in found}

    async def hosts(self) -> frozenset[str]:
        """See `HandoverCluster`."""
        found: set[str] = set()
        for one in await self._items(DAEMON_SETS):
            if self._is_theirs(one):
                labels = words_of(one, "spec", "selector", "matchLabels")
                selector = ",".join(f"{key}={value}" for key, value in sorted(labels.items()))
                namespace = words_of(one, "metadata").get("namespace", "")
                pods = await self._items(PODS.collection(namespace), labelSelector=selector)
                found |= {words_of(pod, "spec").get("nodeName", "") for pod in pods}
        return frozenset(found - {""})

    async def view(self, node: str) -> NodeView:
        """See `HandoverCluster`."""
        pods = await self._items(PODS.collection(), fieldSelector=f"spec.nodeName={node}")
        slo = await self._one(f"{NODE_SLOS}/{node}") if self._origin.beside else None
        document = await self._one(NODES.path(node))
        if document is None:
            raise Refused(f"node {node}: there is no such node (any more); see kubectl get nodes", reason="not_found")
        seen = NodeDocuments(document, pods, await self._one(CNRS.path(node)), slo)
        return view_of(node, seen, self._origin.agent)

    async def change(self, change: ObjectChange) -> None:
        """See `HandoverCluster`."""
        try:
            if change.creates:
                await self._kube.create(change.path, change.body, manager=MANAGER)
            else:
                await self._kube.merge(change.path, change.body, manager=MANAGER)
        except KubeError as error:
            raise Unavailable(f"{change.title}: {error}; run it again", reason=error.reason) from error

    async def label(self, node: str, labels: Mapping[str, str | None]) -> None:
        """See `HandoverCluster`."""
        try:
            await self._kube.merge(NODES.path(node), {"metadata": {"labels": dict(labels)}}, manager=MANAGER)
        except KubeError as error:
            raise Unavailable(f"nodes/{node}: {error}; run it again", reason=error.reason) from error

    async def _installed(self, agent: Document) -> Installed:
        maps = f"/api/v1/namespaces/{self._namespace}/configmaps"
        return Installed(await self._one(f"{maps}/{CENTRAL}"), await self._one(f"{maps}/{NODE_SETTINGS}"), agent)

    def _is_theirs(self, daemon_set: Document) -> bool:
        found = objects_of([{**daemon_set, "kind": "DaemonSet"}], DAEMON_SETS)
        return any(is_agent(one, self._origin.agent) for one in found)

    async def _items(self, path: str, **query: Any) -> list[Document]:
        try:
            return list((await self._kube.list(path, **query)).get("items") or ())
        except KubeError as error:
            if error.status == NOT_FOUND:
                return []
            raise Unavailable(str(error), reason=error.reason) from error

    async def _one(self, path: str) -> Document | None:
        try:
            return await self._kube.get(path)
        except KubeError as error:
            if error.status == NOT_FOUND:
                return None
            raise Unavailable(str(error), reason=error.reason) from error
