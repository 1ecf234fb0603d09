"""A node: containerd, kubelet and kube-proxy as stock programs, and on the first one names; no way leads out of it."""

import json
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rig.packages import run

from kube_rig.answers import answers
from kube_rig.certificates import Authority
from kube_rig.component import Component, Place
from kube_rig.control_plane import client
from kube_rig.images import Images
from kube_rig.isolation import NODE_IP, POD_NETWORK, Isolation

NODE = "node-1"
RUNTIME_SOCKET = Path("/run/containerd/containerd.sock")
CNI_PROGRAMS = Path("/usr/lib/cni")
MAX_PODS = 300
"""Kubelet's own bound is 110 with those of the system; measurements put more on a node."""
DOMAIN = "cluster.local"
KUBELET_PORT, KUBELET_HEALTH_PORT, PROXY_HEALTH_PORT, DNS_HEALTH_PORT = 10250, 10248, 10256, 8053
_EVICTION_HARD = {"memory.available": "100Mi"} | dict.fromkeys(
    ("nodefs.available", "nodefs.inodesFree", "imagefs.available", "imagefs.inodesFree"), "1%"
)
"""Kubelet's own for memory; how full the machine's disk is must not matter."""
# No process may have a lower oom_score_adj than the one that starts it without CAP_SYS_RESOURCE.
_CONTAINERD = """\
version = 2
root = "{root}"
state = "{socket.parent}"
oom_score = 0

[grpc]
address = "{socket}"

[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "{pause}"
restrict_oom_score_adj = true

[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "{cni_programs}"
conf_dir = "{cni_folder}"

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
"""

# It runs beside the pods, not in one: it has a user's rights instead of an account's.
_COREDNS = """\
.:53 {{
    errors
    health {address}:{port}
    kubernetes {domain} in-addr.arpa {{
        kubeconfig {kubeconfig}
    }}
}}
"""


@dataclass(frozen=True, slots=True)
class Site:
    """The name of a node, and where it is in the network."""

    name: str
    ip: str
    pods: str
    """The network of its pods."""


FIRST = Site(NODE, NODE_IP, POD_NETWORK)


@dataclass(frozen=True, slots=True)
class Makings:
    """What every node is made of."""

    programs: Mapping[str, Path]
    authority: Authority
    images: Images
    folder: Path
    """Of the cluster: files of its programs, and their logs."""
    cache: Path
    """What containerd keeps stays there."""


@dataclass(frozen=True, slots=True)
class Node:
    """Its programs."""

    site: Site
    isolation: Isolation
    containerd: Component
    kubelet: Component
    kube_proxy: Component
    coredns: Component | None = None
    """On the first node."""

    @property
    def _upon_containerd(self) -> tuple[Component, ...]:
        names = () if self.coredns is None else (self.coredns,)
        return (self.kubelet, self.kube_proxy, *names)

    def start(self, images: Images) -> None:
        """Bring all up, with these images and no container of an earlier run."""
        self.containerd.start()
        if left := self._ctr("containers", "list", "--quiet").split():
            self._ctr("containers", "delete", *left)
            self.containerd.stop()
            self.containerd.start()
        known = self._ctr("images", "list", "--quiet").split()
        for image in images:
            if f"docker.io/{image.name}" not in known:
                self.load(image.archive)
        for one in self._upon_containerd:
            one.start(wait=False)
        for one in self._upon_containerd:
            one.wait_ready()

    def stop(self) -> None:
        """End all at once, the pods too."""
        for one in (*self._upon_containerd, self.containerd):
            one.kill()
        self.isolation.groups.end_processes("kubepods")

    def load(self, archive: Path) -> None:
        """Give the node the images of an archive (`docker save`); pods name them with `imagePullPolicy: Never`."""
        self._ctr("images", "import", str(archive))

    def tag(self, name: str, other: str) -> None:
        """Give an image that the node has another name as well."""
        self._ctr("images", "tag", "--force", *(f"docker.io/library/{one}" for one in (name, other)))

    def _ctr(self, *words: str) -> str:
        return run(self.isolation.command(["ctr", "--address", RUNTIME_SOCKET, "--namespace", "k8s.io", *words]))


def build_node(isolation: Isolation, makings: Makings, site: Site = FIRST) -> Node:
    """The programs, not started yet."""

    def answers_itself() -> bool:
        words = isolation.command(["ctr", "--address", RUNTIME_SOCKET, "version"])
        return subprocess.run(words, capture_output=True, check=False).returncode == 0

    def component(name: str, words: Sequence[str | Path], ready: Callable[[], bool], *, tries: int = 1) -> Component:
        log = name if site is FIRST else f"{site.name}-{name}"
        return Component(isolation, words, makings.folder / f"logs/{log}.log", ready, tries=tries)

    own = makings.folder / site.name
    (own / "cni").mkdir(parents=True, exist_ok=True)
    names = build_names(isolation, makings.programs, makings.authority, makings.folder) if site is FIRST else None
    return Node(
        site=site,
        isolation=isolation,
        containerd=component("containerd", ["containerd", "--config", _runtime_config(own, makings, site)],
                             answers_itself),
        kubelet=component("kubelet", _kubelet(own, makings, site),
                          lambda: answers(KUBELET_HEALTH_PORT, "/healthz", secure=False, host=site.ip), tries=10),
        kube_proxy=component("kube-proxy", _kube_proxy(makings, site),
                             lambda: answers(PROXY_HEALTH_PORT, "/healthz", secure=False, host=site.ip)),
        coredns=names,
    )  # fmt: skip


def _runtime_config(own: Path, makings: Makings, site: Site) -> Path:
    (own / "cni/10-pods.conflist").write_text(json.dumps(pods_network(site.pods), indent=1))
    path = own / "containerd.toml"
    root = makings.cache / ("containerd" if site is FIRST else f"containerd-{site.name}")
    path.write_text(
        _CONTAINERD.format(root=root, socket=RUNTIME_SOCKET, pause=makings.images.pause.name,
                           cni_programs=CNI_PROGRAMS, cni_folder=own / "cni")
    )  # fmt: skip
    return path


def _kubelet(own: Path, makings: Makings, site: Site) -> list[str | Path]:
    config = own / "kubelet.json"
    config.write_text(json.dumps(kubelet_config(makings.authority, site), indent=1))
    login = client(makings.authority, makings.folder, f"system:node:{site.name}", ["system:nodes"])
    return [makings.programs["kubelet"], f"--config={config}", f"--kubeconfig={login}",
            f"--hostname-override={site.name}", f"--node-ip={site.ip}"]  # fmt: skip


def _kube_proxy(makings: Makings, site: Site) -> list[str | Path]:
    login = makings.folder / "system-kube-proxy.kubeconfig"  # one for all nodes
    if not login.exists():
        client(makings.authority, makings.folder, "system:kube-proxy")
    return [makings.programs["kube-proxy"], f"--kubeconfig={login}",
            f"--hostname-override={site.name}", f"--cluster-cidr={site.pods}", "--proxy-mode=iptables",
            f"--healthz-bind-address={site.ip}:{PROXY_HEALTH_PORT}", "--oom-score-adj=0",
            "--conntrack-max-per-core=0", "--conntrack-tcp-timeout-established=0",
            "--conntrack-tcp-timeout-close-wait=0"]  # fmt: skip


def pods_network(subnet: str) -> dict[str, object]:
    """What a node's runtime is told of the network of its pods."""
    # Routed, not bridged: what a pod sends to a service passes the node's rules both ways.
    routed = {
        "type": "ptp",
        "ipam": {"type": "host-local", "ranges": [[{"subnet": subnet}]], "routes": [{"dst": "0.0.0.0/0"}]},
    }
    return {
        "cniVersion": "0.4.0",
        "name": "pods",
        "plugins": [routed, {"type": "portmap", "capabilities": {"portMappings": True}}],
    }


def build_names(place: Place, programs: Mapping[str, Path], authority: Authority, folder: Path) -> Component:
    """Who resolves the names of Services, not started yet."""
    config = folder / "Corefile"
    config.write_text(
        _COREDNS.format(address=NODE_IP, port=DNS_HEALTH_PORT, domain=DOMAIN,
                        kubeconfig=client(authority, folder, "coredns", ["system:masters"]))
    )  # fmt: skip
    return Component(place, [programs["coredns"], "-conf", config], folder / "logs/coredns.log",
                     lambda: answers(DNS_HEALTH_PORT, "/health", secure=False))  # fmt: skip


def kubelet_config(authority: Authority, site: Site) -> dict[str, object]:
    """What kubelet is told on a node; its certificate is made along with it."""
    addresses = [f"DNS:{site.name}", f"IP:{site.ip}"]
    server = authority.sign(f"kubelet-{site.name}", site.name, addresses=addresses)
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": site.ip,
        "port": KUBELET_PORT,
        "healthzBindAddress": site.ip,
        "healthzPort": KUBELET_HEALTH_PORT,
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": str(authority.certificate)},
        },
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": str(server.certificate),
        "tlsPrivateKeyFile": str(server.key),
        "containerRuntimeEndpoint": f"unix://{RUNTIME_SOCKET}",
        "cgroupDriver": "cgroupfs",
        "failCgroupV1": False,
        "failSwapOn": False,
        "oomScoreAdj": 0,
        "maxPods": MAX_PODS,
        "clusterDNS": [NODE_IP],
        "clusterDomain": DOMAIN,
        "resolvConf": "",
        "volumePluginDir": "/var/lib/kubelet/volume-plugins",
        "evictionHard": _EVICTION_HARD,
        "imageGCHighThresholdPercent": 100,
    }
