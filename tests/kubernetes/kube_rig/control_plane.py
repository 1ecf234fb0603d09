"""The control plane: etcd, API server, controller manager and scheduler, as a stock cluster runs them."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from kube_rig.answers import answers
from kube_rig.certificates import Authority
from kube_rig.component import Component, Place
from kube_rig.isolation import API_SERVICE_IP, NODE_IP, SERVICE_NETWORK

API_PORT, MANAGER_PORT, SCHEDULER_PORT, ETCD_HEALTH_PORT = 6443, 10257, 10259, 2381
API_SERVER = f"https://{NODE_IP}:{API_PORT}"
SCHEDULER_FILE = Path(__file__).parents[3] / "deploy/k8s/scheduler/profile.yaml"
"""What the documentation tells people to give to a scheduler of their own."""
FRONT_PROXY = "front-proxy-client"
_ETCD = "http://127.0.0.1:2379"


@dataclass(frozen=True, slots=True)
class ControlPlane:
    """Its four programs."""

    etcd: Component
    apiserver: Component
    controller_manager: Component
    scheduler: Component

    def start(self) -> None:
        """Bring all up, each when what it needs answers."""
        self.etcd.start()
        self.apiserver.start()
        for one in (self.controller_manager, self.scheduler):
            one.start(wait=False)
        for one in (self.controller_manager, self.scheduler):
            one.wait_ready()

    def stop(self) -> None:
        """End all at once: nothing of them is kept."""
        for one in (self.scheduler, self.controller_manager, self.apiserver, self.etcd):
            one.kill()


def build_control_plane(place: Place, programs: Mapping[str, Path], authority: Authority, folder: Path) -> ControlPlane:
    """The programs, not started yet; their files lie below `folder`."""

    def component(name: str, flags: Mapping[str, object], port: int, path: str, *, secure: bool = True) -> Component:
        words: list[str | Path] = [programs[name], *(f"--{flag}={value}" for flag, value in flags.items())]
        return Component(place, words, folder / f"logs/{name}.log", lambda: answers(port, path, secure=secure))

    scheduler_config = folder / "scheduler.yaml"
    write_scheduler_config(scheduler_config, client(authority, folder, "system:kube-scheduler"))
    return ControlPlane(
        etcd=component("etcd", _etcd_flags(folder), ETCD_HEALTH_PORT, "/health", secure=False),
        apiserver=component("kube-apiserver", _apiserver_flags(authority), API_PORT, "/readyz"),
        controller_manager=component(
            "kube-controller-manager", _manager_flags(authority, folder), MANAGER_PORT, "/healthz"
        ),
        scheduler=component(
            "kube-scheduler", {"config": scheduler_config, "bind-address": NODE_IP}, SCHEDULER_PORT, "/healthz"
        ),
    )


def client(authority: Authority, folder: Path, user: str, groups: Sequence[str] = ()) -> Path:
    """The kubeconfig of a user, who comes to be by being signed for."""
    file = user.replace(":", "-")
    return authority.kubeconfig(folder / f"{file}.kubeconfig", API_SERVER, authority.sign(file, user, groups))


def write_scheduler_config(path: Path, kubeconfig: Path) -> None:
    """A stock scheduler with the product's profiles."""
    content = yaml.safe_load(SCHEDULER_FILE.read_text()) | {
        "clientConnection": {"kubeconfig": str(kubeconfig)},
        "leaderElection": {"leaderElect": False},
    }
    path.write_text(json.dumps(content, indent=1))


def _etcd_flags(folder: Path) -> dict[str, object]:
    return {
        "data-dir": folder / "etcd",
        "listen-client-urls": _ETCD,
        "advertise-client-urls": _ETCD,
        "listen-peer-urls": "http://127.0.0.1:2380",
        "listen-metrics-urls": f"http://{NODE_IP}:{ETCD_HEALTH_PORT}",
        "unsafe-no-fsync": "true",
        "log-level": "warn",
    }


def _apiserver_flags(authority: Authority) -> dict[str, object]:
    names = ["DNS:kubernetes", "DNS:kubernetes.default", "DNS:kubernetes.default.svc", "DNS:localhost"]
    addresses = [f"IP:{address}" for address in (NODE_IP, API_SERVICE_IP, "127.0.0.1")]
    server = authority.sign("kube-apiserver", "kube-apiserver", addresses=[*names, *addresses])
    to_kubelet = authority.sign("kube-apiserver-to-kubelet", "kube-apiserver-to-kubelet", ["system:masters"])
    proxy = authority.sign("front-proxy-client", FRONT_PROXY)
    return {
        "etcd-servers": _ETCD,
        "secure-port": API_PORT,
        "advertise-address": NODE_IP,
        "tls-cert-file": server.certificate,
        "tls-private-key-file": server.key,
        "client-ca-file": authority.certificate,
        "authorization-mode": "Node,RBAC",
        "enable-admission-plugins": "NodeRestriction",
        "allow-privileged": "true",
        "service-cluster-ip-range": SERVICE_NETWORK,
        "service-account-issuer": "https://kubernetes.default.svc",
        "service-account-key-file": authority.service_account_key,
        "service-account-signing-key-file": authority.service_account_key,
        "kubelet-certificate-authority": authority.certificate,
        "kubelet-client-certificate": to_kubelet.certificate,
        "kubelet-client-key": to_kubelet.key,
        "kubelet-preferred-address-types": "InternalIP",
        # The aggregation layer, as kubeadm sets it up; its authority is the cluster's own, so the name counts.
        "requestheader-client-ca-file": authority.certificate,
        "requestheader-allowed-names": FRONT_PROXY,
        "requestheader-username-headers": "X-Remote-User",
        "requestheader-group-headers": "X-Remote-Group",
        "requestheader-extra-headers-prefix": "X-Remote-Extra-",
        "proxy-client-cert-file": proxy.certificate,
        "proxy-client-key-file": proxy.key,
    }


def _manager_flags(authority: Authority, folder: Path) -> dict[str, object]:
    kubeconfig = client(authority, folder, "system:kube-controller-manager")
    return {
        "bind-address": NODE_IP,
        "secure-port": MANAGER_PORT,
        "kubeconfig": kubeconfig,
        "authentication-kubeconfig": kubeconfig,
        "authorization-kubeconfig": kubeconfig,
        "leader-elect": "false",
        "horizontal-pod-autoscaler-sync-period": "3s",  # a stock cluster looks every 15 s
        "use-service-account-credentials": "true",
        "service-account-private-key-file": authority.service_account_key,
        "root-ca-file": authority.certificate,
        "cluster-signing-cert-file": authority.certificate,
        "cluster-signing-key-file": authority.identity.key,
    }
