"""`KubePods` mirrors this node's pods from the API server, writes them to a file for others, and counts requests.

The file also remembers classes: a pod keeps the first class of its UID, because the other services have acted upon it.
After a restart the class is read back, and so is the CPU's speed, which counts until the Node is read.

A tenant may patch a pod fifty times a second, and each list wakes the other services. Therefore only a pod that comes,
ends or changes its class is written at once; other changes are collected, and the Node is written every 2 s at most.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import structlog

from shared.adapters.files.pods import PodsFile
from shared.adapters.kube.client import Kube
from shared.adapters.kube.node import KubeNode
from shared.adapters.kube.watch import Collection, Mirror
from shared.contracts.pod import Pod, QosClass
from shared.core.cpus.normalization import node_normalization_ratio
from shared.core.pods.extended_resources import BATCH_NAMES, OTHER_NAME, requests_of
from shared.core.pods.kube_pod import pod_of, without_doubled_files
from shared.core.pods.qos import Fallback
from shared.errors import Unavailable
from shared.ports import Clock

log = structlog.get_logger()

PODS = "/api/v1/pods"
RETRY_S = 1.0
SHOW_S = 60.0
"""Seconds between two writes of the Node's amounts, in case the Node was recreated."""
COLLECT_S = 0.5
"""Pause between two lists with the same pods, of which only annotations, labels or amounts differ."""
SOON_S = 0.05
"""Pause between any two lists."""
SHOW_GAP_S = 2.0
"""Pause between two writes of the Node that follow from what pods ask for."""
WITHDRAWN_S = 5.0
"""While central has withdrawn the amounts: how often the Node is asked whether they may be shown again."""


@dataclass(frozen=True, slots=True)
class ListedPod:
    """A pod, None if it cannot be read, and its requests."""

    pod: Pod | None
    asks: Mapping[str, int]


class KubePods:
    """Runs next to the reporter, which has the credentials."""

    def __init__(self, kube: Kube, node: str, file: PodsFile, clock: Clock, *, fallback: Fallback) -> None:
        before = _pods_before(file)
        self._classes: dict[str, QosClass] = {pod.uid: pod.qos for pod in before}
        self._ratio_before = max((pod.cpu_normalization_ratio for pod in before), default=1.0)

        def keep(document: Mapping[str, Any]) -> ListedPod:
            pod = pod_of(document, fallback, self._classes.get(document["metadata"]["uid"]))
            if pod is not None:
                self._classes[pod.uid] = pod.qos
            return ListedPod(pod, requests_of(document))

        self._clock, self._file, self._wake = clock, file, asyncio.Event()
        self._mirror = Mirror(
            Collection(kube, PODS, fieldSelector=f"spec.nodeName={node}"), keep, clock, changed=self._wake.set
        )
        self._failure = self._unread = ""
        self._written_at_s = self._shown_at_s = float("-inf")
        self._written_who: frozenset[tuple[object, ...]] = frozenset()
        self._show_due = False

    def failure(self) -> str:
        """Why the other services do not see the newest pods; "" while they do."""
        return self._mirror.why or self._failure or self._unread

    def asked(self) -> dict[str, int]:
        """Return the pods' requests, by the exact resource names; empty before the first list."""
        total = dict.fromkeys(OTHER_NAME, 0)
        kept = self._mirror.objects.values() if self._mirror.age_s is not None else ()
        for one in kept:
            for name, amount in one.asks.items():
                total[name] += amount
        return total

    async def run(self, shown: KubeNode) -> None:
        """Work until cancelled."""
        shown.cpu_changed = self._wake.set
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._mirror.run(), name="reporter-pods")
            tasks.create_task(self._tell_forever(shown), name="reporter-pods-told")

    async def _tell_forever(self, shown: KubeNode) -> None:
        while True:
            # Read before the wait, because `_tell` sets it again.
            late = self._show_due
            # Nothing has changed for the whole time: write anyway, because the Node may have been recreated. A write
            # that is only late does not count.
            again = not await self._woken(self._patience_s(shown)) and not late
            await self._collect()
            if self._mirror.age_s is not None and not await self._tell(shown, again=again):
                await self._clock.sleep(RETRY_S)
                self._wake.set()

    def _patience_s(self, shown: KubeNode) -> float:
        """How long to wait where no pod changes."""
        if self._show_due:
            return max(0.0, self._shown_at_s + SHOW_GAP_S - self._clock.monotonic())
        return WITHDRAWN_S if shown.withdrawn else SHOW_S

    async def _collect(self) -> None:
        """Wait out the time between two lists; of different pods only a moment."""
        while (left_s := self._written_at_s + COLLECT_S - self._clock.monotonic()) > 0:
            if self._who() != self._written_who:
                await self._clock.sleep(max(0.0, left_s - COLLECT_S + SOON_S))
                break
            await self._woken(left_s)
        self._wake.clear()

    def _who(self) -> frozenset[tuple[object, ...]]:
        """Return the part of the pods that other services must know at once."""
        if self._mirror.age_s is None:
            return frozenset()
        pods = (one.pod for one in self._mirror.objects.values() if one.pod is not None)
        return frozenset((pod.uid, pod.qos, pod.phase, pod.terminating) for pod in pods)

    async def _woken(self, timeout_s: float) -> bool:
        try:
            async with asyncio.timeout(timeout_s):
                await self._wake.wait()
        except TimeoutError:
            return False
        self._wake.clear()
        return True

    def _normalized(self, known: Mapping[str, Pod], shown: KubeNode) -> list[Pod]:
        """The pods; those that ask for batch-cpu with how fast the node's CPU is. Katalyst's amounts mean any CPU."""
        ratio = self._ratio_before if shown.seen is None else node_normalization_ratio(shown.seen)
        changed = {"cpu_normalization_ratio": ratio}
        return [
            pod.model_copy(update=changed) if ratio > 1 and self._mirror.objects[uid].asks.keys() & BATCH_NAMES else pod
            for uid, pod in known.items()
        ]

    async def _tell(self, shown: KubeNode, *, again: bool) -> bool:
        known = {uid: one.pod for uid, one in self._mirror.objects.items() if one.pod is not None}
        # Forgets the pods that are gone; a UID is never used again.
        self._classes = {uid: pod.qos for uid, pod in known.items()}
        unread = (self._mirror.objects.keys() - known.keys()) | self._mirror.unread.keys()
        self._unread = f"pods that cannot be read: {len(unread)}, among them UID {min(unread)!r}" if unread else ""
        now_s = self._clock.monotonic()
        try:
            self._written_at_s, self._written_who = now_s, self._who()
            # The file first: the node's other services must know of a pod also where the API server takes no write.
            self._file.write(without_doubled_files(self._normalized(known, shown)))
            self._show_due = now_s < self._shown_at_s + SHOW_GAP_S
            if not self._show_due and await shown.show(again=again):
                self._shown_at_s = now_s
        except Unavailable as error:
            if str(error) != self._failure:
                log.warning("pods.not_told", why=str(error))
            self._failure = str(error)
            return False
        self._failure = ""
        return True


def _pods_before(file: PodsFile) -> Sequence[Pod]:
    """The list of the process before this one; empty where it cannot be read."""
    try:
        return file.pods()
    except Unavailable as error:
        log.info("pods.no_list_before", why=str(error))
        return ()
