"""The whole cluster: control plane, node, and how a test reaches them."""

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from compose_rig.parts import ENGINE
from rig_parts import Needs, Say, until

from kube_rig.certificates import Authority, Identity
from kube_rig.clients import Clients
from kube_rig.clients import CommandError as CommandError
from kube_rig.control_plane import ControlPlane, build_control_plane, client
from kube_rig.images import Images, prepare_images
from kube_rig.isolation import Isolation, ToThisMachine
from kube_rig.node import CNI_PROGRAMS, NODE, Makings, Node, build_node
from kube_rig.programs import build_programs

CLUSTER = Needs(
    name="kubernetes",
    what="the Kubernetes cluster",
    why_root="a node makes namespaces, mounts and cgroups",
    tools={
        **ENGINE.tools,
        "containerd": "containerd",
        "runc": "runc",
        str(CNI_PROGRAMS / "ptp"): "containernetworking-plugins",
        "ip": "iproute2",
        "iptables": "iptables",
        "openssl": "openssl",
    },
)
READY_LIMIT_S = 60.0


@dataclass(frozen=True, slots=True)
class Cluster(Clients):
    """A running cluster."""

    control_plane: ControlPlane
    node: Node
    images: Images

    def groups(self, pattern: str) -> list[Path]:
        """The cgroups of a name (`kubepods/**/pod*`) in all hierarchies, as paths of this machine."""
        return self.node.isolation.groups.find(pattern)


@contextmanager
def running(cache: Path, say: Say) -> Iterator[Cluster]:
    """The cluster for as long as the block lasts; it ends with this thread, however that ends.

    Raises:
        RigMissing: something could not be built, or did not come up; with its last words.
    """
    programs, images = build_programs(cache, say), prepare_images(cache, say)
    isolation = Isolation(cache, ToThisMachine())
    try:
        isolation.open()
        cluster = _assemble(isolation, programs, images, cache)
        try:
            # Of a run that was killed.
            shutil.rmtree(cluster.folder / "etcd", ignore_errors=True)
            cluster.control_plane.start()
            cluster.node.start(images)
            until(lambda: ready(cluster), READY_LIMIT_S, f"{NODE} being Ready")
            yield cluster
        finally:
            cluster.node.stop()
            cluster.control_plane.stop()
            shutil.rmtree(cluster.folder / "etcd", ignore_errors=True)
    finally:
        isolation.close()


def _assemble(isolation: Isolation, programs: Mapping[str, Path], images: Images, cache: Path) -> Cluster:
    """A cluster that is not started; the folder of the last one, with its logs, makes room."""
    folder = cache / "cluster"
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "logs").mkdir(parents=True)
    authority = Authority(folder / "certificates")
    return Cluster(
        control_plane=build_control_plane(isolation, programs, authority, folder),
        node=build_node(isolation, Makings(programs, authority, images, folder, cache)),
        images=images,
        programs=programs,
        authority=authority,
        folder=folder,
        admin=client(authority, folder, "admin", ["system:masters"]),
        administrator=Identity(folder / "certificates/admin.crt", folder / "certificates/admin.key"),
    )


def ready(cluster: Clients) -> bool:
    """Whether the node is ready, and pods may be made in the namespace `default`."""
    nodes, accounts = (cluster.get(kind)["items"] for kind in ("nodes", "serviceaccounts"))
    conditions = [one for node in nodes for one in node["status"].get("conditions", [])]
    return bool(accounts) and any((one["type"], one["status"]) == ("Ready", "True") for one in conditions)
