"""Mirrors of what the extender needs, each of which tells the view of every change."""

from collections.abc import Mapping
from typing import Any

from services.central.core.scheduling.cluster.node_documents import measured_node, offering_cnr, schedulable_node
from services.central.core.scheduling.cluster.placement_view import PlacementView
from services.central.core.scheduling.cluster.pod_asks import PodSeen, assigned_pod
from services.central.core.scheduling.cluster.reservations import Reservations
from shared.core.api_kind import CNRS, NODE_METRICS, NODES, PODS
from shared.errors import Unavailable
from shared.ports import ObjectMirror, Objects


class SchedulingMirrors:
    """Nodes, CNRs, NodeMetrics where they are read, and the pods that were given a node."""

    def __init__(
        self, objects: Objects, view: PlacementView, reservations: Reservations, *, node_metrics: bool = True
    ) -> None:
        self._view, self._reservations = view, reservations
        self._pods = objects.mirror_each(PODS, assigned_pod, self._pod)
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

    def _pod(self, uid: str, pod: PodSeen | None) -> None:
        self._view.put_pod(uid, pod)
        # It is seen where it is, or is gone: it counts nowhere else any more.
        self._reservations.release(uid)
