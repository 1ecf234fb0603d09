"""Recorded nodes through the rules of recommendation, as central would have followed them."""

import heapq
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from services.central.core.recommendation.ledger import UsageLedger
from services.central.core.recommendation.objects.workloads import WorkloadPod
from services.central.core.recommendation.oom import OomKill
from services.central.core.recommendation.readings import container_readings
from services.reporter.core.cluster.figures import figure_fields
from services.reporter.core.cluster.series import memory_used
from shared.contracts.cluster.figures import FIGURES_PERIOD_S
from shared.contracts.pod import Pod
from shared.contracts.sample import ContainerReading
from sublet.replay.decisions.reading import ClusterRecording
from sublet.replay.requests.cluster import ClusterFrames
from sublet.replay.requests.watched import RequestRules, WatchedWorkload
from sublet.replay.requests.workloads import RecordedWorkload, as_workload_pod
from sublet.replay.traces.frames import EPOCH, Frame, Trace

MAX_WORKLOADS = 2000
"""Of one comparison; of further ones nothing is learned."""


@dataclass(slots=True)
class RequestsReplay:
    """The workloads of some nodes, and what is known of each."""

    rules: RequestRules
    began: datetime = EPOCH
    """When the recording began; a node's does not say it."""
    kills: Mapping[str, tuple[OomKill, ...]] = field(default_factory=dict)
    """Of the pods of the newest frames by UID, where a recording knows them; it changes with them."""
    watched: dict[RecordedWorkload, WatchedWorkload] = field(default_factory=dict)
    ledger: UsageLedger = field(default_factory=UsageLedger)
    frames: int = 0
    at_s: float = 0.0
    """Of the newest frame."""
    reclaimed: set[str] = field(default_factory=set)
    """Pods that ask for reclaimed resources: there is nothing to recommend to them. No more than can be said."""
    left_out: bool = False
    """Whether there are workloads beyond `MAX_WORKLOADS`."""
    _pods: dict[str, dict[str, WorkloadPod]] = field(default_factory=dict)
    """The others, by node and UID."""
    _figured_s: dict[str, float] = field(default_factory=dict)
    _passed_s: float = float("-inf")

    @property
    def now(self) -> datetime:
        """The moment of the newest frame."""
        return self.began + timedelta(seconds=self.at_s)

    def observe(self, frame: Frame) -> None:
        """Count the time of a frame, learn from it as often as central would, and give figures where they are due."""
        node = frame.sample.node
        self.frames, self.at_s, self._pods[node] = self.frames + 1, frame.at_s, {}
        for one in frame.sample.pods:
            if one.pod.phase != "Running":
                continue
            if one.pod.qos == "reclaimed_cores":
                if len(self.reclaimed) < MAX_WORKLOADS:
                    self.reclaimed.add(one.pod.key)
            elif (watched := self._watched(one.pod)) is not None:
                self._pods[node][one.pod.uid] = as_workload_pod(
                    watched.workload, node, one.pod, self.kills.get(one.pod.uid, ())
                )
                for reading in one.containers:
                    watched.count(one.pod, reading.name, used_amounts(reading), frame.covers_s)
        if frame.at_s - self._figured_s.get(node, float("-inf")) >= FIGURES_PERIOD_S:
            self._figured_s[node] = frame.at_s
            self._learn(frame)
        if frame.at_s - self._passed_s >= self.rules.pass_s:
            self._passed_s = frame.at_s
            self._decide()

    def _watched(self, pod: Pod) -> WatchedWorkload | None:
        workload = RecordedWorkload.of(pod)
        if workload not in self.watched:
            if len(self.watched) >= MAX_WORKLOADS:
                self.left_out = True
                return None
            self.watched[workload] = WatchedWorkload.of(workload, pod, self.rules)
            self.ledger.follow({one.uid: one.key for one in self.watched})
        self.watched[workload].see(pod)
        return self.watched[workload]

    def _learn(self, frame: Frame) -> None:
        """What the node would have told central, which then knows no more than that."""
        figures = figure_fields(frame.sample, None, None, ())
        for one in container_readings(figures["pods"], figures["containers"]):
            if (pod := self._pods[frame.sample.node].get(one.pod_uid)) is not None:
                self.ledger.see(pod, one.container, self.now.timestamp(), one.used)

    def _decide(self) -> None:
        pods: dict[tuple[str, str], list[WorkloadPod]] = {}
        for of_node in self._pods.values():
            for pod in of_node.values():
                pods.setdefault((pod.namespace, pod.workload), []).append(pod)
        for workload, watched in self.watched.items():
            mine: Sequence[WorkloadPod] = pods.get(workload.key, ())
            watched.pods = max(watched.pods, len(mine))
            self.ledger.observe(workload.uid, mine, watched.deployment, self.now.timestamp())
            watched.decide(self.ledger, self.at_s, self.now)


def used_amounts(reading: ContainerReading) -> dict[str, int]:
    """What a container uses, in milli and bytes; what is not known is absent."""
    cpu = None if reading.cpu_usage_cores is None else round(reading.cpu_usage_cores * 1000)
    known = {"cpu": cpu, "memory": memory_used(reading)}
    return {name: amount for name, amount in known.items() if amount is not None}


def replay_requests(traces: Iterable[Trace], rules: RequestRules) -> RequestsReplay:
    """What becomes known of all workloads; the recordings count as begun at the same moment."""
    replay = RequestsReplay(rules)
    for frame in heapq.merge(*(trace.frames() for trace in traces), key=lambda frame: frame.at_s):
        replay.observe(frame)
    return replay


def replay_cluster_requests(recording: ClusterRecording, rules: RequestRules) -> RequestsReplay:
    """The same of a cluster's recording, which knows kills for want of memory too."""
    cluster = ClusterFrames(recording)
    replay = RequestsReplay(rules, recording.began, cluster.kills)
    for frame in cluster.frames():
        replay.observe(frame)
    return replay
