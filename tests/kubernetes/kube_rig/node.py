"""The one node: containerd, kubelet, kube-proxy and names as stock programs; no way leads out of it."""

import json
import subprocess
from collections.abc import Mapping
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
NETWORK = {
    "cniVersion": "0.4.0",
    "name": "pods",
    "plugins": [
        # Routed, not bridged: what a pod sends to a service passes the node's rules both ways.
        {
            "type": "ptp",
            "ipam": {"type": "host-local", "ranges": [[{"subnet": POD_NETWORK}]], "routes": [{"dst": "0.0.0.0/0"}]},
        },
        {"type": "portmap", "capabilities": {"portMappings": True}},
    ],
}
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
class Node:
    """Its programs."""

    isolation: Isolation
    containerd: Component
    kubelet: Component
    kube_proxy: Component
    coredns: Component

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
        for one in (self.kubelet, self.kube_proxy, self.coredns):
            one.start(wait=False)
        for one in (self.kubelet, self.kube_proxy, self.coredns):
            one.wait_ready()

    def stop(self) -> None:
        """End all at once, the pods too."""
        for one in (self.kubelet, self.kube_proxy, self.coredns, self.containerd):
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


def build_node(
    isolation: Isolation, programs: Mapping[str, Path], authority: Authority, images: Images, folder: Path, cache: Path
) -> Node:
    """The programs, not started yet; their files lie below `folder`, what containerd keeps in the cache."""

    def answers_itself() -> bool:
        words = isolation.command(["ctr", "--address", RUNTIME_SOCKET, "version"])
        return subprocess.run(words, capture_output=True, check=False).returncode == 0

    network = folder / "cni"
    network.mkdir()
    (network / "10-pods.conflist").write_text(json.dumps(NETWORK, indent=1))
    runtime_config = folder / "containerd.toml"
    runtime_config.write_text(
        _CONTAINERD.format(root=cache / "containerd", socket=RUNTIME_SOCKET, pause=images.pause.name,
                           cni_programs=CNI_PROGRAMS, cni_folder=network)
    )  # fmt: skip
    kubelet_file = folder / "kubelet.json"
    kubelet_file.write_text(json.dumps(kubelet_config(authority), indent=1))
    kubelet_client = client(authority, folder, f"system:node:{NODE}", ["system:nodes"])
    kubelet: list[str | Path] = [programs["kubelet"], f"--config={kubelet_file}", f"--kubeconfig={kubelet_client}",
               f"--hostname-override={NODE}", f"--node-ip={NODE_IP}"]  # fmt: skip
    proxy: list[str | Path] = [programs["kube-proxy"], f"--kubeconfig={client(authority, folder, 'system:kube-proxy')}",
             f"--hostname-override={NODE}", f"--cluster-cidr={POD_NETWORK}", "--proxy-mode=iptables",
             f"--healthz-bind-address={NODE_IP}:{PROXY_HEALTH_PORT}", "--oom-score-adj=0",
             "--conntrack-max-per-core=0", "--conntrack-tcp-timeout-established=0",
             "--conntrack-tcp-timeout-close-wait=0"]  # fmt: skip
    logs = folder / "logs"
    return Node(
        isolation=isolation,
        containerd=Component(isolation, ["containerd", "--config", runtime_config], logs / "containerd.log",
                             answers_itself),
        kubelet=Component(isolation, kubelet, logs / "kubelet.log",
                          lambda: answers(KUBELET_HEALTH_PORT, "/healthz", secure=False), tries=10),
        kube_proxy=Component(isolation, proxy, logs / "kube-proxy.log",
                             lambda: answers(PROXY_HEALTH_PORT, "/healthz", secure=False)),
        coredns=build_names(isolation, programs, authority, folder),
    )  # fmt: skip


def build_names(place: Place, programs: Mapping[str, Path], authority: Authority, folder: Path) -> Component:
    """Who resolves the names of Services, not started yet."""
    config = folder / "Corefile"
    config.write_text(
        _COREDNS.format(address=NODE_IP, port=DNS_HEALTH_PORT, domain=DOMAIN,
                        kubeconfig=client(authority, folder, "coredns", ["system:masters"]))
    )  # fmt: skip
    return Component(place, [programs["coredns"], "-conf", config], folder / "logs/coredns.log",
                     lambda: answers(DNS_HEALTH_PORT, "/health", secure=False))  # fmt: skip


def kubelet_config(authority: Authority, ip: str = NODE_IP) -> dict[str, object]:
    """What kubelet is told on a node of this address; its certificate is made along with it."""
    server = authority.sign("kubelet", NODE, addresses=[f"DNS:{NODE}", f"IP:{ip}"])
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": ip,
        "port": KUBELET_PORT,
        "healthzBindAddress": ip,
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
