"""Pods that request reclaimed resources and have no node yet: behind gates, or on their way through a scheduler."""

from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any

from services.central.core.profiles.capacity_gate import gates_of, reclaimed_asked
from services.central.core.scheduling.gate_release import GatedPod
from shared.core.text.document import mapping, text

FINISHED = ("Succeeded", "Failed")


def waiting_pod(document: Mapping[str, Any]) -> GatedPod | None:
    """Read a Pod; None: it has a node, is terminating, or takes nothing of the offer.

    Raises:
        Refused: it has another shape than a Pod, or an amount is no quantity.
    """
    meta, spec = mapping(document.get("metadata"), "metadata"), mapping(document.get("spec"), "spec")
    phase = mapping(document.get("status"), "status").get("phase")
    if spec.get("nodeName") or phase in FINISHED or meta.get("deletionTimestamp"):
        return None
    asked = reclaimed_asked(document)
    if not any(asked.values()):
        return None
    priority = spec.get("priority")
    return GatedPod(
        namespace=text(meta.get("namespace"), "metadata.namespace"),
        name=text(meta.get("name"), "metadata.name"),
        created_s=_created_s(meta.get("creationTimestamp")),
        gates=gates_of(document),
        requests=asked,
        priority=priority if isinstance(priority, int) else 0,
        uid=text(meta.get("uid"), "metadata.uid"),
    )


def _created_s(moment: object) -> float:
    """Return seconds since 1970; an unreadable time counts as the newest, so that it delays no other pod."""
    if isinstance(moment, str):
        with suppress(ValueError, OverflowError):
            return datetime.fromisoformat(moment).timestamp()
    return float("inf")


class WaitingPods:
    """An index of a mirror of pods, notified of each change."""

    def __init__(self) -> None:
        self._pods: dict[str, GatedPod] = {}

    def put(self, uid: str, pod: GatedPod | None) -> None:
        """A pod waits as given, or no longer."""
        if pod is None:
            self._pods.pop(uid, None)
        else:
            self._pods[uid] = pod

    @property
    def pods(self) -> Mapping[str, GatedPod]:
        """All of them, by UID."""
        return self._pods

    @property
    def coming(self) -> Counter[str]:
        """Return the requests of pods that have left the gate, for which schedulers are looking for a node."""
        found = Counter[str]()
        for pod in self._pods.values():
            if not pod.gates:
                found.update(pod.requests)
        return found
