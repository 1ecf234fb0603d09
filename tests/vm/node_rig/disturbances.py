"""What befalls a node while a tenant and a batch pod run on it, and how to tell that all is well again."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from guest import listings as printed
from kube_rig.node import NODE
from more_nodes import is_ready
from rig_parts import until

from node_rig.walk import Walk

UNIT_LIMIT_S, NODE_LIMIT_S = 120.0, 600.0
SWAP = "/var/lib/containerd/swap"
SWAP_MIB = 256
CGROUP_V1 = "/etc/rig-cgroup-v1"
"""Where it is, the node's first program mounts cgroup v1 before systemd looks."""
REJECTED = "OutOf"
"""How the reasons begin for which kubelet rejects a pod that does not fit."""


@dataclass(frozen=True, slots=True)
class Running:
    """One pod's life: none of it changes unless the pod is started anew."""

    uid: str
    container: str
    restarts: int


@dataclass(slots=True)
class Pair:
    """A shared and a reclaimed pod on the node, and a third one that shows whether the node still takes work."""

    walk: Walk
    shared: str
    reclaimed: str
    third: Mapping[str, Any]
    documents: tuple[Mapping[str, Any], ...] = ()
    """The two as they were started."""
    evicted: frozenset[str] = frozenset()
    """What was told of evictions before anything befell the node."""

    def begin(self, *documents: Mapping[str, Any]) -> None:
        """Start the two on an empty node."""
        self.documents, sublet = documents, self.walk.sublet
        if there := sublet.pods():
            sublet.end(*there)
        sublet.start(*documents)
        self.evicted = self._evictions()
        self._wait_figures("before anything befalls the node")

    def running(self) -> dict[str, Running]:
        """The lives of both, by pod."""
        found = {}
        for name in (self.shared, self.reclaimed):
            document = self.walk.node.get("pod", name)
            (container,) = document["status"]["containerStatuses"]
            found[name] = Running(document["metadata"]["uid"], container["containerID"], container["restartCount"])
        return found

    def kill(self, unit: str) -> None:
        """SIGKILL to the main process of a unit of systemd, which starts it again."""
        before = self._process(unit)
        self.walk.node.guest.shell(f"systemctl kill --kill-whom=main --signal=KILL {unit}")
        until(lambda: self._process(unit) not in {before, "0"}, UNIT_LIMIT_S, f"another process of {unit}")

    def reboot(self) -> None:
        """Boot the node anew, and wait until both pods run again: the shared one is the same pod.

        At a boot kubelet sets extended resources to 0 and rejects pods that ask for some, before an agent of any kind
        can run. A rejected pod is made anew, as its controller does.
        """
        before, lives = self._boot(), self.running()
        self.walk.node.guest.reboot()
        until(lambda: self._boot() != before, NODE_LIMIT_S, f"another boot of {NODE}")
        until(lambda: self._runs_anew(self.shared, lives), NODE_LIMIT_S, f"{self.shared} running again")
        until(
            lambda: self._rejected() or self._runs_anew(self.reclaimed, lives),
            NODE_LIMIT_S,
            f"{self.reclaimed} running again or rejected",
        )
        if self._rejected():
            self.walk.sublet.end(self.reclaimed)
            self.walk.sublet.start(*(one for one in self.documents if one["metadata"]["name"] == self.reclaimed))

    def turn_swap_on(self) -> None:
        """Give the node swap, of which kubelet lets pods have some."""
        limited = '{"memorySwap": {"swapBehavior": "LimitedSwap"}, '
        lines = (
            "set -e",
            f"dd if=/dev/zero of={SWAP} bs=1M count={SWAP_MIB} status=none; chmod 600 {SWAP}",
            f"mkswap -q {SWAP}; swapon {SWAP}",
            f"sed -i 's/^{{/{limited}/' /etc/kubernetes/kubelet.json; systemctl restart kubelet",
        )
        self.walk.node.guest.shell("\n".join(lines), limit_s=UNIT_LIMIT_S)

    def use_driver(self, name: str) -> None:
        """Tell kubelet and containerd of a cgroup driver, and boot anew: no pod has groups of both then."""
        words = {
            "/etc/kubernetes/kubelet.json": ('"cgroupDriver": "[a-z]*"', f'"cgroupDriver": "{name}"'),
            "/etc/containerd/config.toml": (
                "SystemdCgroup = [a-z]*",
                f"SystemdCgroup = {str(name == 'systemd').lower()}",
            ),
        }
        lines = (f"sed -i 's/{old}/{new}/' {file}; grep -q '{new}' {file}" for file, (old, new) in words.items())
        self.walk.node.guest.shell("\n".join(("set -e", *lines)))
        self.reboot()

    def use_cgroup_v1(self) -> None:
        """Boot anew with the older hierarchy and the driver `systemd`."""
        self.walk.node.guest.shell(f"touch {CGROUP_V1}")
        self.use_driver("systemd")

    def is_well(self, step: str) -> None:
        """Wait until the node takes a pod and gives it its CPUs, and holds offer and sets to the text.

        Raises:
            TimeoutError: it does not become so.
        """
        until(lambda: is_ready(self.walk.node, NODE), NODE_LIMIT_S, f"{NODE} being Ready")
        self.walk.sublet.start(self.third)
        self.walk.wait_cpus(self.third["metadata"]["name"], printed.RECLAIM_42, f"{step}, a new pod")
        self._wait_figures(step)
        assert self._evictions() <= self.evicted, "somebody was evicted for it"

    def end_third(self) -> None:
        """Take the third one away for the next trouble."""
        self.walk.sublet.end(self.third["metadata"]["name"])

    def _wait_figures(self, step: str) -> None:
        self.walk.wait_offer("42k", step)
        for name, cpus in ((self.shared, printed.SHARE_6), (self.reclaimed, printed.RECLAIM_42)):
            self.walk.wait_cpus(name, cpus, step)

    def _runs_anew(self, name: str, before: Mapping[str, Running]) -> bool:
        # One that is rejected, or not looked at yet, has no statuses of containers.
        statuses = self.walk.node.get("pod", name)["status"].get("containerStatuses", [])
        return any(one.get("containerID", "") not in {"", before[name].container} for one in statuses)

    def _rejected(self) -> bool:
        status = self.walk.node.get("pod", self.reclaimed)["status"]
        return status["phase"] == "Failed" and str(status.get("reason", "")).startswith(REJECTED)

    def _evictions(self) -> frozenset[str]:
        """The lines of Events of evictions, without their age, which is the second word."""
        words = (line.split() for line in self.walk.sublet.evict_lines())
        return frozenset(" ".join((namespace, *rest)) for namespace, _age, *rest in words)

    def _process(self, unit: str) -> str:
        return self.walk.node.guest.shell(f"systemctl show --property=MainPID --value {unit}").strip()

    def _boot(self) -> str:
        return str(self.walk.node.get("node", NODE)["status"]["nodeInfo"]["bootID"])
