"""Evicts pods by `policy/v1`: the API server enforces disruption budgets and grace periods, this adapter the UID.

A wrong UID uses up a budget's slot for two minutes, so the pod is read right before every call and only its own UID is
ever sent; a resource version never is. A 201 says that an eviction was accepted, not that the pod is gone: use `lookup`
for that (docs/facts/kubernetes.md#eviction-measured).
"""

import asyncio
import math
from typing import Any

from shared.adapters.kube.client import Kube, KubeError
from shared.contracts.pod import Pod
from shared.errors import Unavailable
from shared.ports import ActionResult, Check, Standing

MANAGER = "sublet-evictor"
NOT_FOUND, SERVER_ERROR = 404, 500
FINISHED = ("Succeeded", "Failed")
LEAST_GRACE_S = 1
"""0 would remove the pod from the API at once, before kubelet has ended its processes; 1 is `kubectl delete --now`."""
FRESH_S, LOOKS = 0.25, 3
"""An answer that took longer may be about a pod that was recreated meanwhile: ending one takes kubelet longer."""


class KubeEvictor:
    """The EvictionActuator of a cluster."""

    def __init__(self, kube: Kube) -> None:
        self._kube = kube

    async def lookup(self, pod: Pod) -> Standing:
        """Return the state of this UID, from the API server itself and not from a cache."""
        try:
            document = await self._kube.get(_path(pod))
        except KubeError as error:
            return "gone" if error.status == NOT_FOUND else "unknown"
        except Unavailable:
            return "unknown"
        meta, status = document.get("metadata") or {}, document.get("status") or {}
        # A finished pod has no process, and its object may stay for a long time: for an eviction it is gone.
        if meta.get("uid") != pod.uid or status.get("phase") in FINISHED:
            return "gone"
        return "terminating" if meta.get("deletionTimestamp") else "running"

    async def _fresh_lookup(self, pod: Pod) -> Standing:
        """Return the state of this UID right now; after a stall of the process or a slow answer, look again."""
        loop = asyncio.get_running_loop()
        for _ in range(LOOKS):
            asked_s = loop.time()
            standing = await self.lookup(pod)
            if standing != "running" or loop.time() - asked_s < FRESH_S:
                break
        return standing

    async def evict(
        self, pod: Pod, *, grace_s: float, dry_run: bool = False, why: str = "", last_check: Check = lambda: None
    ) -> ActionResult:
        """One eviction call for this UID; nothing is sent where the pod is not there any more.

        The API has no place for `why`: the events tell it.
        """
        del why
        standing = await self._fresh_lookup(pod)
        # Asked before every call: with a wrong UID the server refuses, and still uses up a slot of the disruption
        # budget (docs/facts/kubernetes.md#eviction-measured).
        if standing == "gone":
            return ActionResult("gone", f"pod {pod.key} ({pod.uid}) is not there any more")
        if standing == "unknown":
            return ActionResult("unknown", f"pod {pod.key} ({pod.uid}): the API server does not say where it stands")
        # Another eviction would be answered 201 and change nothing.
        if standing == "terminating":
            return ActionResult("accepted", f"pod {pod.key} is terminating")
        last_check()
        try:
            await self._kube.create(f"{_path(pod)}/eviction", _eviction(pod, grace_s, dry_run=dry_run), manager=MANAGER)
        except KubeError as error:
            return _refusal(pod, error)
        except Unavailable as error:
            return ActionResult("unknown", str(error))
        return ActionResult("accepted", f"pod {pod.key} may be evicted" if dry_run else f"pod {pod.key} is evicted")


def _path(pod: Pod) -> str:
    return f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}"


def _eviction(pod: Pod, grace_s: float, *, dry_run: bool) -> dict[str, Any]:
    grace = max(LEAST_GRACE_S, math.ceil(grace_s))
    # The UID and never a resource version: a stale version burns a slot as well.
    options: dict[str, Any] = {"preconditions": {"uid": pod.uid}, "gracePeriodSeconds": grace}
    if dry_run:
        options["dryRun"] = ["All"]
    meta = {"name": pod.name, "namespace": pod.namespace}
    return {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": meta, "deleteOptions": options}


def _refusal(pod: Pod, error: KubeError) -> ActionResult:
    match error.status:
        case 404:
            return ActionResult("gone", f"pod {pod.key} ({pod.uid}) is not there any more")
        case 409:  # the name has another UID now, or the object moved: which of them, the next look tells
            return ActionResult("unknown", str(error))
        case 429:
            return ActionResult("wait", str(error))
        case 403:
            return ActionResult("refused", f"{error}; grant `create` on pods/eviction")
        case 500 if "more than one PodDisruptionBudget" in str(error):
            return ActionResult("refused", f"pod {pod.key} has more than one disruption budget; leave one: {error}")
        case status if status >= SERVER_ERROR:
            # The eviction may have happened before the answer was lost: only a lookup tells.
            return ActionResult("unknown", str(error))
    return ActionResult("failed", str(error))
