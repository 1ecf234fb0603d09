"""The pods of this node from the API server: mirrored, kept in a file for the others, counted by resource name."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import structlog

from shared.adapters.kube_client import Kube
from shared.adapters.kube_node import KubeNode
from shared.adapters.kube_watch import Mirror
from shared.adapters.pods_file import PodsFile
from shared.contracts.pod import Pod
from shared.core.extended_resources import OTHER_NAME, requests_of
from shared.core.kube_pod import pod_of
from shared.core.qos import Fallback
from shared.errors import Unavailable
from shared.ports import Clock

log = structlog.get_logger()

PODS = "/api/v1/pods"
RETRY_S = 1.0
SHOW_S = 60.0
"""The Node's amounts are written anew so often, in case somebody has made the Node anew."""
WITHDRAWN_S = 5.0
"""So often it is asked whether they may be shown again, while central has taken them from sale."""


@dataclass(frozen=True, slots=True)
class Kept:
    """What is kept of a pod."""

    pod: Pod
    asks: Mapping[str, int]


class KubePods:
    """Runs beside the reporter, which holds the credentials."""

    def __init__(self, kube: Kube, node: str, file: PodsFile, clock: Clock, *, fallback: Fallback) -> None:
        def keep(document: Mapping[str, Any]) -> Kept | None:
            pod = pod_of(document, fallback)
            return None if pod is None else Kept(pod, requests_of(document))

        self._clock, self._file, self._wake = clock, file, asyncio.Event()
        self._mirror = Mirror(kube, PODS, keep, clock, changed=self._wake.set, fieldSelector=f"spec.nodeName={node}")
        self._failure = ""

    def failure(self) -> str:
        """Why the other services do not see the newest pods; "" while they do."""
        return self._mirror.why or self._failure

    def asked(self) -> dict[str, int]:
        """What the pods ask for, by the very names that they use; nothing before the first list."""
        total = dict.fromkeys(OTHER_NAME, 0)
        kept = self._mirror.objects.values() if self._mirror.age_s is not None else ()
        for one in kept:
            for name, amount in one.asks.items():
                total[name] += amount
        return total

    async def run(self, shown: KubeNode) -> None:
        """Work until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._mirror.run(), name="reporter-pods")
            tasks.create_task(self._tell_forever(shown), name="reporter-pods-told")

    async def _tell_forever(self, shown: KubeNode) -> None:
        while True:
            again = not await self._woken(WITHDRAWN_S if shown.withdrawn else SHOW_S)
            if self._mirror.age_s is not None and not await self._tell(shown, again=again):
                await self._clock.sleep(RETRY_S)
                self._wake.set()

    async def _woken(self, timeout_s: float) -> bool:
        try:
            async with asyncio.timeout(timeout_s):
                await self._wake.wait()
        except TimeoutError:
            return False
        self._wake.clear()
        return True

    async def _tell(self, shown: KubeNode, *, again: bool) -> bool:
        try:
            self._file.write([one.pod for one in self._mirror.objects.values()])
            await shown.show(again=again)
        except Unavailable as error:
            if str(error) != self._failure:
                log.warning("pods.not_told", why=str(error))
            self._failure = str(error)
            return False
        self._failure = ""
        return True
