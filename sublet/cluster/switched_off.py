"""`clear_switched_off` removes what disabled parts of the cluster's half have left, while the rest keeps running.

The chart records in a ConfigMap which parts were on; a disabled part stays recorded until its leftovers are removed, so
that the next upgrade completes an interrupted one.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from shared.adapters.kube.client import Kube, KubeError
from shared.core.api_kind import CONFIG_MAPS
from shared.errors import Unavailable
from shared.ports import Clock
from sublet.cluster.leftovers.edits import MANAGER, NOT_FOUND, Say
from sublet.cluster.leftovers.parts import clear_parts

SWITCHES = "sublet-switches"
"""The ConfigMap: by part `on`, or `off` where it was on before."""
POLL_S = 2.0


@dataclass(frozen=True, slots=True)
class SwitchedOff:
    """Which parts are off, of the installation in a namespace, and how long its processes may take to know it."""

    namespace: str
    parts: Collection[str]
    wait_s: float


async def clear_switched_off(kube: Kube, clock: Clock, off: SwitchedOff, say: Say) -> None:
    """Wait until no process runs any more with the settings of before, clear, and then say that it is cleared.

    Raises:
        Unavailable: one still runs, something could not be taken away, or the API server cannot be reached.
    """
    end_s = clock.monotonic() + off.wait_s
    while late := await _rolling_out(kube, off.namespace):
        if clock.monotonic() >= end_s:
            raise Unavailable(
                f"still with the settings of before after {off.wait_s:g} s in {off.namespace}: {', '.join(late)}; "
                "look at `kubectl rollout status`, and run it again",
                reason="rolling_out",
            )
        await clock.sleep(POLL_S)
    await clear_parts(kube, off.namespace, off.parts, say)
    await _told(kube, off.namespace, off.parts)


async def _rolling_out(kube: Kube, namespace: str) -> list[str]:
    """Deployments of which a pod is of a former version."""
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    try:
        found = (await kube.list(path, labelSelector="app.kubernetes.io/name=sublet"))["items"]
    except KubeError as error:
        raise Unavailable(f"{error}; run it again", reason=error.reason) from error
    return sorted(one["metadata"]["name"] for one in found if not _is_rolled_out(one))


def _is_rolled_out(deployment: Mapping[str, Any]) -> bool:
    meta, status = deployment["metadata"], deployment.get("status") or {}
    wanted, updated = deployment["spec"].get("replicas", 1), status.get("updatedReplicas", 0)
    seen = status.get("observedGeneration") == meta.get("generation")
    return bool(seen and updated == wanted and status.get("replicas", 0) == updated)


async def _told(kube: Kube, namespace: str, parts: Iterable[str]) -> None:
    path = CONFIG_MAPS.path(SWITCHES, namespace)
    try:
        await kube.merge(path, {"data": dict.fromkeys(parts)}, manager=MANAGER)
    except KubeError as error:
        if error.status != NOT_FOUND:
            raise Unavailable(f"{error}; run it again", reason=error.reason) from error
