"""The objects of a running cluster from which a plan is made; missing kinds are left out."""

from collections.abc import Mapping, Sequence

from shared.adapters.kube.client import Document, Kube, KubeError
from shared.errors import Unavailable
from sublet.migrate.plan.objects import ClusterObject, objects_of

Kinds = Sequence[tuple[str, str]]
NOT_FOUND = 404
DAEMON_SETS = ("DaemonSet", "/apis/apps/v1/daemonsets")
NODES = ("Node", "/api/v1/nodes")
OF_KOORDINATOR = (
    ("ConfigMap", "/api/v1/configmaps?slo-controller-config"),
    DAEMON_SETS,
    NODES,
    ("ClusterColocationProfile", "/apis/config.koordinator.sh/v1alpha1/clustercolocationprofiles"),
    ("NodeSLO", "/apis/slo.koordinator.sh/v1alpha1/nodeslos"),
)
OF_KATALYST = (
    ("KatalystCustomConfig", "/apis/config.katalyst.kubewharf.io/v1alpha1/katalystcustomconfigs"),
    ("AdminQoSConfiguration", "/apis/config.katalyst.kubewharf.io/v1alpha1/adminqosconfigurations"),
    ("EvictionConfiguration", "/apis/config.katalyst.kubewharf.io/v1alpha1/evictionconfigurations"),
    DAEMON_SETS,
    ("Deployment", "/apis/apps/v1/deployments"),
)
KINDS: Mapping[str, Kinds] = {"koordinator": OF_KOORDINATOR, "katalyst": OF_KATALYST}
"""Kind and path of each; behind a question mark the one name that is asked for."""


async def read_cluster_objects(kube: Kube, kinds: Kinds) -> list[ClusterObject]:
    """All objects of these kinds.

    Raises:
        Unavailable: no answer, or no right to read; names what cannot be read.
        Refused: there are too many of a kind.
    """
    found: list[ClusterObject] = []
    for kind, path in kinds:
        found += objects_of([{"kind": kind, **_version(path), **one} for one in await _items(kube, path)], path)
    return found


def _version(path: str) -> dict[str, str]:
    """Group and version, which the items of a list do not say."""
    parts = path.partition("?")[0].split("/")
    return {"apiVersion": "/".join(parts[2:-1])}


async def _items(kube: Kube, path: str) -> list[Document]:
    collection, _, name = path.partition("?")
    query = {"fieldSelector": f"metadata.name={name}"} if name else {}
    try:
        answer = await kube.list(collection, **query)
    except KubeError as error:
        if error.status == NOT_FOUND:
            return []
        raise Unavailable(f"{error}; or write it into files and name them with -f", reason=error.reason) from error
    return list(answer.get("items") or ())
