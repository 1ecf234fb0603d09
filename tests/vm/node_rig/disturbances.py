"""What befalls a node while a tenant and a batch pod run on it, and how to tell that all is well again."""

from collections.abc import Mapping, Sequence
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
    evicted: frozenset[str] = frozenset()
    """What was told of evictions before anything befell the node."""

    def begin(self, documents: Sequence[Mapping[str, Any]]) -> None:
        """Start the two on an empty node."""
        sublet = self.walk.sublet
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
        """Boot the node anew, and wait until kubelet tells it."""
        before, lives = self._boot(), self.running()
        self.walk.node.guest.reboot()
        until(lambda: self._boot() != before, NODE_LIMIT_S, f"another boot of {NODE}")
        until(lambda: self._all_started_after(lives), NODE_LIMIT_S, "both pods running again")

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

    def _all_started_after(self, before: Mapping[str, Running]) -> bool:
        now = self.running()
        return all(now[name].container not in {"", life.container} for name, life in before.items())

    def _evictions(self) -> frozenset[str]:
        """The lines of Events of evictions, without their age, which is the second word."""
        words = (line.split() for line in self.walk.sublet.evict_lines())
        return frozenset(" ".join((namespace, *rest)) for namespace, _age, *rest in words)

    def _process(self, unit: str) -> str:
        return self.walk.node.guest.shell(f"systemctl show --property=MainPID --value {unit}").strip()

    def _boot(self) -> str:
        return str(self.walk.node.get("node", NODE)["status"]["nodeInfo"]["bootID"])
