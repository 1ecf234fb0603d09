"""A cluster with an emulated machine as its node; the control plane, and a node for what belongs to no other node, run
beside it on this machine's own CPUs."""

import base64
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from kube_rig.certificates import Identity
from kube_rig.clients import Clients
from kube_rig.control_plane import ControlPlane, build_control_plane, client
from kube_rig.images import Image
from kube_rig.isolation import POD_NETWORK
from kube_rig.node import NODE, Makings, Node, Site, build_names, kubelet_config, pods_network
from more_nodes import is_ready, started
from rig.machine import Machine
from rig.packages import run
from rig_parts import until

from node_rig.guest_machine import TUTORIALS, Guest, booted
from node_rig.network import GUEST_IP, own_network
from node_rig.root import Disks

HOME = Path("/etc/kubernetes")
"""What kubelet and kube-proxy are told lies there in the guest."""
BESIDE = Site("beside", "10.213.4.2", "10.213.224.0/20")
"""The node that is not emulated: central and its hub would be as slow as the emulated one."""
READY_LIMIT_S, KUBELET_START_LIMIT_S = 480.0, 120.0


@dataclass(frozen=True, slots=True)
class GuestCluster(Clients):
    """A running cluster."""

    control_plane: ControlPlane
    guest: Guest
    beside: Node


@contextmanager
def running(disks: Disks, makings: Makings, product: Image, machine: Machine = TUTORIALS) -> Iterator[GuestCluster]:
    """The cluster for as long as the block lasts, in whose network this thread is then.

    Raises:
        RigMissing: something does not come up; with its last words.
        TimeoutError: the node does not become Ready.
    """
    folder, programs, authority = makings.folder, makings.programs, makings.authority
    with own_network() as inside:
        control_plane = build_control_plane(inside, programs, authority, folder)
        names = build_names(inside, programs, authority, folder)
        administrator = Identity(folder / "certificates/admin.crt", folder / "certificates/admin.key")
        admin = client(authority, folder, "admin", ["system:masters"])
        clients = Clients(programs, authority, folder, admin, administrator)
        try:
            control_plane.start()
            names.start()
            with booted(disks, inside, folder, machine) as guest, started(clients, inside, makings, BESIDE) as beside:
                cluster = GuestCluster(programs, authority, folder, admin, administrator, control_plane, guest, beside)
                _join(cluster)
                beside.load(product.archive)
                for name in (BESIDE.name, NODE):
                    until(partial(is_ready, cluster, name), READY_LIMIT_S, f"{name} being Ready")
                yield cluster
        finally:
            names.kill()
            control_plane.stop()
            shutil.rmtree(folder / "etcd", ignore_errors=True)


def _join(cluster: GuestCluster) -> None:
    """Tell the node who it is, and start what makes it one; from then on both start at each boot."""
    config = kubelet_config(cluster.authority, Site(NODE, GUEST_IP, POD_NETWORK))
    files = {
        HOME / "pki/ca.crt": cluster.authority.certificate.read_bytes(),
        HOME / "pki/kubelet.crt": (cluster.folder / "certificates" / f"kubelet-{NODE}.crt").read_bytes(),
        HOME / "pki/kubelet.key": (cluster.folder / "certificates" / f"kubelet-{NODE}.key").read_bytes(),
        HOME / "kubelet.json": json.dumps(config | _of_the_guest()).encode(),
        HOME / "kubelet.kubeconfig": _whole(cluster, f"system:node:{NODE}", "system:nodes"),
        HOME / "proxy.kubeconfig": _whole(cluster, "system:kube-proxy"),
        Path("/etc/cni/net.d/10-pods.conflist"): json.dumps(pods_network(POD_NETWORK)).encode(),
    }
    lines = [
        f"mkdir -p {path.parent}; base64 -d >{path} <<<{base64.b64encode(text).decode()}"
        for path, text in files.items()
    ]
    start = "systemctl enable --quiet --now --no-block kubelet kube-proxy"
    cluster.guest.shell("\n".join(("set -e", *lines, start)), limit_s=KUBELET_START_LIMIT_S)


def _of_the_guest() -> dict[str, object]:
    """What kubelet is told otherwise than on the rig's own node."""
    return {
        "cgroupDriver": "systemd",
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": f"{HOME}/pki/ca.crt"},
        },
        "tlsCertFile": f"{HOME}/pki/kubelet.crt",
        "tlsPrivateKeyFile": f"{HOME}/pki/kubelet.key",
        "maxPods": 110,
    }


def _whole(cluster: GuestCluster, user: str, *groups: str) -> bytes:
    """A kubeconfig with keys and certificates in it, for another machine."""
    path = client(cluster.authority, cluster.folder, user, groups)
    words = ["config", "view", "--raw", "--flatten", f"--kubeconfig={path}"]
    return run([cluster.programs["kubectl"], *words]).encode()
