"""Records recent use of a node, its system, its pods and other applications; each sample is one pass over all of
them.

Facts: docs/facts/koordinator-node-metric.md#figures.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from services.reporter.core.batch_demand import used_cpu_millis
from services.reporter.core.node_metric.collect_policy import CollectPolicy, MemoryCollectPolicy
from services.reporter.core.node_metric.numa_usage import numa_cpu_millis, numa_memory_bytes
from services.reporter.core.node_metric.usage_series import UsageSeries, WindowValues
from shared.contracts.pod import Pod
from shared.contracts.sample import ApplicationReading, GroupReading, NodeReading, NodeSample, PodReading

NODE_SLOT_S = 1.0
POD_SLOTS = 30
"""For pods only the mean is reported, so a thirtieth of the window is fine enough."""
MOST_COVERED_S = 60.0
"""A first figure after a machine slept for an hour is not taken for that hour's."""


@dataclass(frozen=True, slots=True)
class UsedResources:
    """Use of CPU and memory."""

    cpu_millis: int
    memory_bytes: int


@dataclass(frozen=True, slots=True)
class _Reading:
    """Both figures of one pass; one that is absent is not 0."""

    cpu_millis: int | None
    memory_bytes: int | None


class UsageWindow:
    """CPU and memory of one thing over time."""

    __slots__ = ("_cpu", "_memory")

    def __init__(self, slot_s: float, slots: int) -> None:
        self._cpu, self._memory = UsageSeries(slot_s, slots), UsageSeries(slot_s, slots)

    @classmethod
    def of_the_node(cls, policy: CollectPolicy) -> Self:
        """One that has percentiles of each of the policy's windows."""
        return cls(NODE_SLOT_S, policy.longest_s + 1)

    @classmethod
    def with_a_mean(cls, policy: CollectPolicy) -> Self:
        """One that has a mean and no percentiles, as of a pod."""
        return cls(policy.aggregate_s / POD_SLOTS, POD_SLOTS + 1)

    def __len__(self) -> int:
        """How many slots are kept."""
        return len(self._cpu) + len(self._memory)

    def add(self, reading: "_Reading", at_s: float, covered_s: float) -> None:
        """Add the figures that are known."""
        if reading.cpu_millis is not None:
            self._cpu.add(reading.cpu_millis, at_s, covered_s)
        if reading.memory_bytes is not None:
            self._memory.add(reading.memory_bytes, at_s, covered_s)

    def mean(self, window_s: float, now_s: float) -> UsedResources | None:
        """The mean of a window; None where one of both is not known."""
        return _both(self._cpu.mean(window_s, now_s), self._memory.mean(window_s, now_s))

    def mean_parts(self, window_s: float, now_s: float) -> tuple[int | None, int | None]:
        """Return the means of CPU and of memory, each None if unknown."""
        means = (self._cpu.mean(window_s, now_s), self._memory.mean(window_s, now_s))
        cpu_millis, memory_bytes = (None if mean is None else round(mean) for mean in means)
        return cpu_millis, memory_bytes

    def percentiles(self, window_s: float, now_s: float) -> dict[str, UsedResources]:
        """Mean and percentiles by Koordinator's names; nothing where less than half of the window was measured."""
        cpu, memory = self._cpu.window(window_s, now_s), self._memory.window(window_s, now_s)
        if not (cpu.complete and memory.complete):
            return {}
        found = {
            name: _both(_percentile(cpu, name), _percentile(memory, name)) for name in ("p50", "p90", "p95", "p99")
        }
        whole = {"avg": _both(cpu.mean, memory.mean)} | found
        return {name: used for name, used in whole.items() if used is not None}


class UsageWindows:
    """The node, what is no pod, and each pod of the newest sample."""

    def __init__(self, policy: CollectPolicy) -> None:
        self._policy = policy
        self.node, self.system = UsageWindow.of_the_node(policy), UsageWindow.of_the_node(policy)
        self.pods: dict[str, tuple[Pod, UsageWindow]] = {}
        """By UID; what is gone is forgotten."""
        self.applications: dict[str, tuple[ApplicationReading, UsageWindow]] = {}
        """Those outside of pods, by name."""
        self.numas: dict[int, UsageWindow] = {}

    @property
    def kept_slots(self) -> int:
        """Return how many slots are kept; each takes `BYTES_PER_SLOT`."""
        means = [window for _, window in (*self.pods.values(), *self.applications.values())]
        return sum(map(len, (self.node, self.system, *means, *self.numas.values())))

    def add(self, sample: NodeSample, now_s: float) -> None:
        """Take a sample; the first one of a life has no rates, and covers no time."""
        covered_s = min(sample.window_s or 0.0, MOST_COVERED_S)
        if not covered_s:
            return
        memory = self._policy.memory
        pods = [(one.pod, _Reading(used_cpu_millis(one), _pod_memory(one, memory))) for one in sample.pods]
        applications = [
            (one, _Reading(one.cpu_used_millis, _group_memory(one, memory))) for one in sample.host_applications
        ]
        node = _node_reading(sample.node_reading, memory)
        self.node.add(node, now_s, covered_s)
        # What has no figure counts for the system, because no scheduler places work on what it may use.
        others = [reading for _, reading in (*pods, *applications)]
        self.system.add(_without(node, others), now_s, covered_s)
        self.pods = {pod.uid: (pod, self._kept(pod)) for pod, _ in pods}
        for pod, reading in pods:
            self.pods[pod.uid][1].add(reading, now_s, covered_s)
        self.applications = {one.name: (one, self._kept_of(one)) for one, _ in applications}
        for one, reading in applications:
            self.applications[one.name][1].add(reading, now_s, covered_s)
        self._add_numas(sample, now_s, covered_s)

    def _add_numas(self, sample: NodeSample, now_s: float, covered_s: float) -> None:
        cpu_millis, before = numa_cpu_millis(sample), self.numas
        self.numas = {}
        for numa in sample.numas:
            window = before[numa.numa] if numa.numa in before else self._new_window()
            used = _Reading(cpu_millis.get(numa.numa), numa_memory_bytes(numa, self._policy.memory))
            window.add(used, now_s, covered_s)
            self.numas[numa.numa] = window

    def _kept(self, pod: Pod) -> UsageWindow:
        known = self.pods.get(pod.uid)
        return self._new_window() if known is None else known[1]

    def _kept_of(self, one: ApplicationReading) -> UsageWindow:
        known = self.applications.get(one.name)
        return self._new_window() if known is None else known[1]

    def _new_window(self) -> UsageWindow:
        return UsageWindow.with_a_mean(self._policy)


def _without(node: _Reading, others: Sequence[_Reading]) -> _Reading:
    """Return the node's use minus that of all others; never less than zero."""
    cpu = sum(one.cpu_millis or 0 for one in others)
    memory = sum(one.memory_bytes or 0 for one in others)
    return _Reading(
        None if node.cpu_millis is None else max(0, node.cpu_millis - cpu),
        None if node.memory_bytes is None else max(0, node.memory_bytes - memory),
    )


def _node_reading(node: NodeReading, policy: MemoryCollectPolicy) -> _Reading:
    cpu = None if node.cpu_usage_cores is None else round(node.cpu_usage_cores * 1000)
    rest = node.memory_free_bytes if policy == "usageWithPageCache" else node.memory_available_bytes
    if node.memory_total_bytes is None or rest is None:
        return _Reading(cpu, None)
    return _Reading(cpu, max(0, node.memory_total_bytes - rest))


def _pod_memory(pod: PodReading, policy: MemoryCollectPolicy) -> int | None:
    """Of all containers that have a figure; None where none has."""
    known = [used for one in pod.containers if (used := _group_memory(one, policy)) is not None]
    return sum(known) if known else None


def _group_memory(one: GroupReading, policy: MemoryCollectPolicy) -> int | None:
    if policy == "usageWithPageCache":
        return one.memory_usage_bytes
    # The node's figure counts what cannot be reclaimed; a working set holds active pages of files too.
    if one.memory_rss_bytes is not None:
        return one.memory_rss_bytes + (one.memory_shmem_bytes or 0)
    return one.memory_working_set_bytes if one.memory_working_set_bytes is not None else one.memory_usage_bytes


def _percentile(values: WindowValues, name: str) -> float | None:
    return values.percentile(int(name.removeprefix("p")))


def _both(cpu_millis: float | None, memory_bytes: float | None) -> UsedResources | None:
    return None if cpu_millis is None or memory_bytes is None else UsedResources(round(cpu_millis), round(memory_bytes))
