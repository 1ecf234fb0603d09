"""A cluster's recording as frames of its nodes: what their figures say of the pods that the API server has."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from services.central.core.recommendation.objects.workloads import pod_of_workload
from services.central.core.recommendation.oom import OomKill
from services.central.core.recommendation.readings import container_readings
from shared.contracts.cluster.figures import PodFigures
from shared.contracts.pod import Pod
from shared.contracts.sample import ContainerReading, NodeReading, NodeSample, PodReading
from shared.core.api_kind import PODS
from shared.core.object_reader import ObjectReader
from shared.core.pods.kube_pod import pod_of
from sublet.replay.decisions.frames import RecordedObject
from sublet.replay.decisions.objects import MAX_OBJECTS
from sublet.replay.decisions.reading import ClusterRecording
from sublet.replay.traces.frames import Frame
from sublet.replay.traces.reading import MAX_GAP_S


@dataclass(slots=True)
class ClusterFrames:
    """The frames of all nodes, oldest first; `kills` are those of the pods that are there, by UID."""

    recording: ClusterRecording
    kills: dict[str, tuple[OomKill, ...]] = field(default_factory=dict)
    _pods: dict[str, Pod] = field(default_factory=dict)
    _heard_s: dict[str, float] = field(default_factory=dict)

    def frames(self) -> Iterator[Frame]:
        """A frame for each message of a node."""
        pods, workloads = ObjectReader(pod_of), ObjectReader(pod_of_workload)
        for frame in self.recording.frames:
            if isinstance(frame.what, PodFigures):
                yield self._frame(frame.at_s, frame.what)
            elif isinstance(frame.what, RecordedObject) and frame.what.kind == PODS.kind:
                uid, document = frame.what.uid, frame.what.document
                pod = None if document is None else pods.read(uid, document, self._pods.get(uid))
                if pod is None or (uid not in self._pods and len(self._pods) >= MAX_OBJECTS):
                    self._pods.pop(uid, None)
                    self.kills.pop(uid, None)
                    continue
                self._pods[uid] = pod
                if (of_workload := workloads.read(uid, document, None)) is not None:
                    self.kills[uid] = of_workload.kills

    def _frame(self, at_s: float, figures: PodFigures) -> Frame:
        passed_s = at_s - self._heard_s.get(figures.node, at_s)
        if passed_s > MAX_GAP_S:
            self.recording.faults.gaps_s += passed_s
            passed_s = 0.0
        self._heard_s[figures.node] = at_s
        used: dict[str, list[ContainerReading]] = {}
        for one in container_readings(figures.pods, figures.containers):
            memory = one.used["memory"]
            reading = ContainerReading(
                name=one.container,
                cpu_usage_cores=one.used["cpu"],
                memory_working_set_bytes=None if memory is None else round(memory),
            )
            used.setdefault(one.pod_uid, []).append(reading)
        known = ((self._pods.get(uid), readings) for uid, readings in used.items())
        readings = tuple(PodReading(pod=pod, containers=tuple(rows)) for pod, rows in known if pod is not None)
        envelope = figures.model_dump(include={"v", "node", "boot_id", "seq", "sent_at"})
        return Frame(at_s, passed_s, NodeSample(**envelope, node_reading=NodeReading(online_cpus=""), pods=readings))
