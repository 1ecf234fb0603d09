"""A node on kubelet's groups, played by files: its pods, what they use, and a tripwire that looks at all of them."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kernel_trees import KernelTree

from services.metrics.adapters.collector import Collector
from services.metrics.adapters.host import HostReader
from services.metrics.adapters.targets import LayoutTargets
from services.metrics.adapters.tripwire import HostTripwire
from services.metrics.core.figures.results import LastPass
from services.metrics.core.reads.pooled import pool_of_members
from services.metrics.core.sample.summary import summarise
from services.metrics.registry import known_sources
from shared.adapters.host.cgroup import Cgroups
from shared.adapters.host.kubelet_tree import find_layout
from shared.contracts.pod import Container, Pod
from shared.contracts.sample import NodeSample
from shared.core.cgroups.kubelet_layout import Driver, KubeletLayout

S = 10**9
MIB = 1 << 20
SHARE = pool_of_members("share")


def pod(uid: str, qos: str = "shared_cores", kube: str = "Burstable", **fields: object) -> Pod:
    container = Container(name="main", id=f"containerd://{uid * 6}")
    return Pod(uid=uid, name=uid, qos=qos, kube_qos=kube, containers=(container,), **fields)


WEB, API, OWNER = pod("aa"), pod("bb"), pod("cc", "dedicated_cores", "Guaranteed")
BATCH, ENCODE = pod("dd", "reclaimed_cores", "BestEffort"), pod("ee", "reclaimed_cores", "BestEffort")


class Node:
    """A node with kubelet's tree; a pod's group counts what its containers used, and those that have ended."""

    def __init__(self, folder: Path, driver: Driver, version: int) -> None:
        self.tree = KernelTree(folder, version)
        self.tree.machine()
        self.tree.node()
        self.layout = KubeletLayout(driver)
        for group in self.layout.homes:
            self.tree.group(group)
            (self.tree.folder(group, "cpuset")).mkdir(parents=True, exist_ok=True)
        cgroups = Cgroups(folder)
        assert find_layout(cgroups) == self.layout
        self.targets = LayoutTargets(folder, self.layout)
        self.now_s, self.memory = 0.0, LastPass()
        self.collector = Collector(HostReader(folder, cgroups), known_sources(), self.targets, lambda: self.now_s)
        self.tripwire = HostTripwire(folder, cgroups, self.targets.tenants)

    def used(self, pod: Pod, seconds: float, memory: int = 100 * MIB, tasks: str = "") -> None:
        """What a pod has used since it began, and uses now."""
        figures: dict[str, Any] = {
            "usage_ns": int(seconds * S),
            "memory": memory,
            "rss": memory // 2,
            "inactive_file": memory // 4,
        }
        self.tree.group(self.layout.pod_group(pod), **figures)
        group = self.layout.container_group(pod, pod.containers[0])
        assert group is not None
        self.tree.group(group, **figures, tids=self.tree.tasks(tasks))

    def usage_file(self, group: str) -> Path:
        if self.tree.version == 1:
            return self.tree.folder(group, "cpuacct") / "cpuacct.usage"
        return self.tree.folder(group, "cpu") / "cpu.stat"

    def remove(self, pod: Pod) -> None:
        for controller in ("cpuset", "cpu", "cpuacct", "memory", "blkio"):
            folder = self.tree.folder(self.layout.pod_group(pod), controller)
            if folder.exists():
                folder.rename(self.tree.root / f"gone-{pod.uid}-{controller}-{self.now_s}")

    def sample(self, pods: Sequence[Pod], *, after_s: float = 2.0) -> NodeSample:
        """One pass; what failed is in `failures`."""
        self.now_s += after_s
        collected = self.collector.collect(pods)
        self.failures = collected.failures
        fields, self.memory = summarise(self.memory, collected.readings, self.collector.offered, pods, self.now_s)
        return NodeSample(node="n", boot_id="0" * 8, seq=1, sent_at=datetime.now(UTC), **fields)


class QuietNode:
    """A node whose tripwire looks at all pods first."""

    def __init__(self, node: Node) -> None:
        self.node, self.pods = node, [WEB, API]
        self.used = dict.fromkeys((WEB.uid, API.uid, "others"), 10 * S)
        for pod in self.pods:
            node.used(pod, 10)
        cgroups = Cgroups(node.tree.root)
        self.tripwire = HostTripwire(node.tree.root, cgroups, node.targets.tenants, node.layout.top)
        node.sample(self.pods)
        self.write()
        self.tripwire.probe()  # the groups have changed since it was made

    @property
    def tenants_ns(self) -> int:
        return self.used[WEB.uid] + self.used[API.uid]

    def write(self) -> None:
        for pod in self.pods:
            self.say(self.node.layout.pod_group(pod), self.used[pod.uid])
        self.say(self.node.layout.top, sum(self.used.values()))

    def say(self, group: str, used_ns: int) -> None:
        text = f"{used_ns}\n" if self.node.tree.version == 1 else f"usage_usec {used_ns // 1000}\n"
        self.node.usage_file(group).write_text(text)

    def use(self, who: str, more_ns: int) -> None:
        self.used[who] += more_ns
        self.write()

    def probe(self) -> int | None:
        return self.tripwire.probe()[0]
