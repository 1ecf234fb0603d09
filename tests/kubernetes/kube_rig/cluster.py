"""The whole cluster, and how a test reaches it."""

import http.client
import json
import os
import shutil
import ssl
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from compose_rig.parts import ENGINE
from rig_parts import Needs, Say, until

from kube_rig.certificates import Authority, Identity
from kube_rig.control_plane import API_PORT, ControlPlane, build_control_plane, client
from kube_rig.images import Images, prepare_images
from kube_rig.isolation import NODE_IP, Isolation
from kube_rig.node import CNI_PROGRAMS, NODE, Node, build_node
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
READY_LIMIT_S, REQUEST_LIMIT_S, GONE_LIMIT_S = 60.0, 30.0, 90.0


class CommandError(Exception):
    """A client of the cluster said no; with its words."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """A running cluster."""

    control_plane: ControlPlane
    node: Node
    images: Images
    programs: Mapping[str, Path]
    authority: Authority
    folder: Path
    admin: Path
    """A kubeconfig for which nothing is forbidden."""
    administrator: Identity
    """The same user's certificate."""

    def kubectl(self, *words: str, given: str | None = None, kubeconfig: Path | None = None) -> str:
        """What kubectl prints; `given` is its standard input (`apply -f -`), the admin is who asks if nobody else.

        Raises:
            CommandError: it failed.
        """
        return self._run("kubectl", words, given, kubeconfig)

    def aside(self, *words: str) -> subprocess.Popen[bytes]:
        """A kubectl that goes on in the background; nobody hears what it says."""
        nowhere = subprocess.DEVNULL
        return subprocess.Popen(
            [self.programs["kubectl"], *words],
            env=self._environment(None),
            stdin=nowhere,
            stdout=nowhere,
            stderr=nowhere,
        )

    def helm(self, *words: str, given: str | None = None) -> str:
        """What helm prints.

        Raises:
            CommandError: it failed.
        """
        return self._run("helm", words, given, None)

    def get(self, *words: str) -> dict[str, Any]:
        """An object or a list of them, as the API server has it.

        Raises:
            CommandError: there is none.
        """
        found: dict[str, Any] = json.loads(self.kubectl("get", *words, "--output", "json"))
        return found

    def request(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
        """Status code and answer of the API server for the admin, at any path; a refusal is an answer."""
        trusting = ssl.create_default_context(cafile=str(self.authority.certificate))
        trusting.load_cert_chain(self.administrator.certificate, self.administrator.key)
        connection = http.client.HTTPSConnection(NODE_IP, API_PORT, timeout=REQUEST_LIMIT_S, context=trusting)
        with closing(connection):
            content = None if body is None else json.dumps(body)
            connection.request(method, path, content, {"Content-Type": "application/json"})
            response = connection.getresponse()
            return response.status, json.loads(response.read())

    def apply(self, *objects: Mapping[str, Any]) -> None:
        """Create or change objects.

        Raises:
            CommandError: one was refused.
        """
        self.kubectl("apply", "--filename", "-", given=yaml.safe_dump_all(objects))

    def wait_gone(self, name: str) -> None:
        """Wait for the end of an object that is on its way out (`namespace/x`), if there is one.

        Raises:
            CommandError: it stays.
        """
        self.kubectl("wait", name, "--for=delete", f"--timeout={GONE_LIMIT_S:.0f}s")

    def client(self, user: str, groups: Sequence[str] = ()) -> Path:
        """The kubeconfig of any user: who it is says the certificate, what it may the cluster's roles."""
        return client(self.authority, self.folder, user, groups)

    def groups(self, pattern: str) -> list[Path]:
        """The cgroups of a name (`kubepods/**/pod*`) in all hierarchies, as paths of this machine."""
        return self.node.isolation.groups.find(pattern)

    def _run(self, name: str, words: Sequence[str], given: str | None, kubeconfig: Path | None) -> str:
        done = subprocess.run(
            [self.programs[name], *words],
            env=self._environment(kubeconfig),
            input=given,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise CommandError((done.stderr or done.stdout).strip())
        return done.stdout

    def _environment(self, kubeconfig: Path | None) -> dict[str, str]:
        """No client knows what somebody has set up for himself on this machine."""
        home = str(self.folder / "home")
        folders = {f"XDG_{kind}_HOME": home for kind in ("CONFIG", "CACHE", "DATA")}
        return {**os.environ, "KUBECONFIG": str(kubeconfig or self.admin), "HOME": home, "NO_PROXY": "*", **folders}


@contextmanager
def running(cache: Path, say: Say) -> Iterator[Cluster]:
    """The cluster for as long as the block lasts; it ends with this thread, however that ends.

    Raises:
        RigMissing: something could not be built, or did not come up; with its last words.
    """
    programs, images = build_programs(cache, say), prepare_images(cache, say)
    isolation = Isolation(cache)
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
        node=build_node(isolation, programs, authority, images, folder, cache),
        images=images,
        programs=programs,
        authority=authority,
        folder=folder,
        admin=client(authority, folder, "admin", ["system:masters"]),
        administrator=Identity(folder / "certificates/admin.crt", folder / "certificates/admin.key"),
    )


def ready(cluster: Cluster) -> bool:
    """Whether the node is ready, and pods may be made in the namespace `default`."""
    nodes, accounts = (cluster.get(kind)["items"] for kind in ("nodes", "serviceaccounts"))
    conditions = [one for node in nodes for one in node["status"].get("conditions", [])]
    return bool(accounts) and any((one["type"], one["status"]) == ("Ready", "True") for one in conditions)
