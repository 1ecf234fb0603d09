"""Further real nodes: each a containerd, a kubelet and a kube-proxy in namespaces and cgroups of its own.

They share this machine's kernel and CPUs with the first node, and know nothing of each other.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial

from kube_rig.clients import Clients
from kube_rig.cluster import CLUSTER, Cluster
from kube_rig.component import Place
from kube_rig.images import Image
from kube_rig.isolation import GROUPS, NETWORK, Isolation
from kube_rig.node import Makings, Node, Site, build_node
from rig.packages import run
from rig_parts import until

SITES = (Site("node-2", "10.213.2.2", "10.213.192.0/20"), Site("node-3", "10.213.3.2", "10.213.208.0/20"))
READY_LIMIT_S = 90.0


class ToTheFirst:
    """The line of a further node to where the control plane runs, which passes on what is for others."""

    def __init__(self, first: Place, site: Site) -> None:
        self._first, self._site = first, site

    def join(self, machine: Isolation) -> None:
        """Make it, to a machine that is open."""
        site, near = self._site, f"to-{self._site.name}"
        gateway = f"{site.ip.rpartition('.')[0]}.1"
        self._at_the_first("link", "add", near, "type", "veth", "peer", "name", "eth0", "netns", str(machine.pid))
        self._at_the_first("address", "add", f"{gateway}/24", "dev", near)
        self._at_the_first("link", "set", near, "up")
        for words in (
            ("address", "add", f"{site.ip}/24", "dev", "eth0"),
            ("link", "set", "eth0", "up"),
            ("route", "add", NETWORK, "via", gateway),
            ("route", "add", "unreachable", site.pods),  # each pod that is there has a narrower one
        ):
            run(machine.command(["ip", *words]))
        self._at_the_first("route", "add", site.pods, "via", site.ip)

    def cut(self) -> None:
        """It ends with the namespaces at either end."""

    def left(self) -> list[str]:
        """Nothing of it is outside of namespaces."""
        return []

    def _at_the_first(self, *words: str) -> None:
        run(self._first.command(["ip", *words]))


@contextmanager
def joined(cluster: Cluster, *images: Image) -> Iterator[tuple[Node, ...]]:
    """Two more nodes, Ready and with these images, for as long as the block lasts.

    Raises:
        RigMissing: a program does not come up; with its last words.
        TimeoutError: a node does not become Ready.
    """
    cache = CLUSTER.cache_folder()
    makings = Makings(cluster.programs, cluster.authority, cluster.images, cluster.folder, cache)
    with ExitStack() as stack:
        nodes = tuple(stack.enter_context(started(cluster, cluster.node.isolation, makings, site)) for site in SITES)
        for node in nodes:
            for image in images:
                node.load(image.archive)
            until(partial(is_ready, cluster, node.site.name), READY_LIMIT_S, f"{node.site.name} being Ready")
        yield nodes


@contextmanager
def started(cluster: Clients, first: Place, makings: Makings, site: Site) -> Iterator[Node]:
    """A node of a cluster, with the images that every node has, for as long as the block lasts.

    Raises:
        RigMissing: a program does not come up; with its last words.
    """
    line = ToTheFirst(first, site)
    isolation = Isolation(makings.cache, line, name=site.name, groups=f"{GROUPS}-{site.name}")
    try:
        isolation.open()
        node = build_node(isolation, makings, site)
        try:
            node.start(makings.images)
            yield node
        finally:
            node.stop()
    finally:
        isolation.close()
        cluster.kubectl("delete", "node", site.name, "--ignore-not-found")
    assert isolation.left() == []


def is_ready(cluster: Clients, name: str) -> bool:
    """Whether kubelet says so of a node."""
    found = [node for node in cluster.get("nodes")["items"] if node["metadata"]["name"] == name]
    conditions = found[0]["status"].get("conditions", []) if found else []
    return any((one["type"], one["status"]) == ("Ready", "True") for one in conditions)
