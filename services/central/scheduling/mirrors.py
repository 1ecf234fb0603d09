"""Mirrors of what the extender needs, each of which notifies the view of every change."""

from collections.abc import Mapping
from typing import Any

from services.central.core.scheduling.cluster.node_documents import measured_node, offering_cnr, schedulable_node
from services.central.core.scheduling.cluster.placement_view import PlacementView
from services.central.core.scheduling.cluster.pod_asks import PodSeen, assigned_pod
from services.central.core.scheduling.cluster.reservations import Reservations
from services.central.core.scheduling.gate_release import GatedPod
from services.central.core.scheduling.waiting_pods import WaitingPods, waiting_pod
from shared.core.api_kind import CNRS, NODE_METRICS, NODES, PODS
from shared.errors import Unavailable
from shared.ports import ObjectMirror, Objects


def placed_or_waiting(document: Mapping[str, Any]) -> PodSeen | GatedPod | None:
    """A pod that was given a node, or one that waits for room in what nodes offer; None: neither."""
    return assigned_pod(document) or waiting_pod(document)


class SchedulingMirrors:
    """Nodes, CNRs, NodeMetrics if they are read, and the pods that have a node."""

    def __init__(
        self,
        objects: Objects,
        view: PlacementView,
        reservations: Reservations,
        *,
        node_metrics: bool = True,
        waiting: WaitingPods | None = None,
    ) -> None:
        """`waiting` is notified of waiting pods; None: they are not needed."""
        self._view, self._reservations, self._waiting = view, reservations, waiting
        keep = assigned_pod if waiting is None else placed_or_waiting
        self._pods: ObjectMirror[PodSeen | GatedPod] = objects.mirror_each(PODS, keep, self._pod)
        nodes = objects.mirror_each(NODES, schedulable_node, view.put_node)
        self._needed: list[ObjectMirror[Any]] = [nodes, self._pods]
        # A cluster may have neither kind: then nothing of them is known.
        cnrs = objects.mirror_each(CNRS, offering_cnr, view.put_cnr)
        self._further: list[ObjectMirror[Any]] = [cnrs]
        if node_metrics:
            metrics = objects.mirror_each(NODE_METRICS, measured_node, view.put_metric)
            self._further.append(metrics)

    @property
    def every(self) -> list[ObjectMirror[Any]]:
        """All of them, to be run."""
        return [*self._needed, *self._further]

    @property
    def failure(self) -> str:
        """Why there is no answer yet, "" once Nodes and pods were listed: without them room would be sold twice."""
        try:
            for mirror in self._needed:
                _ = mirror.objects
        except Unavailable as error:
            return str(error)
        return ""

    @property
    def follows_pods(self) -> bool:
        """Whether pods that are given a node would be seen now."""
        return not self._pods.why

    @property
    def unread(self) -> Mapping[str, str]:
        """Objects that cannot be read, by UID, and why."""
        return {uid: why for mirror in self.every for uid, why in mirror.unread.items()}

    def _pod(self, uid: str, pod: PodSeen | GatedPod | None) -> None:
        if self._waiting is not None:
            self._waiting.put(uid, pod if isinstance(pod, GatedPod) else None)
        if isinstance(pod, GatedPod):
            return
        self._view.put_pod(uid, pod)
        # It is seen where it is, or is gone: it counts nowhere else any more.
        self._reservations.release(uid)
