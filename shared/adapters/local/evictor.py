"""Two evictors for hosts without an API server: TERM, grace and KILL of a pod's cgroup on a host, a mark for the
simulator.

A pod is identified only by its UID, which its record and its cgroup have in their names, so a successor with the pod's
name is never touched (docs/facts/safety-rules.md#rule-4-one-eviction-of-one-pod).
"""

import asyncio
import signal
from collections.abc import Callable
from pathlib import Path

import structlog

from shared.adapters.host.cgroup import Cgroups
from shared.adapters.host.cgroup_kill import kill_group, signal_group
from shared.adapters.local.pod_folder import EVICTED
from shared.adapters.local.pods import LocalPods
from shared.adapters.local.stored_pod import StoredPod
from shared.contracts.pod import Pod
from shared.core.cgroups.layout import ROOT, pod_group
from shared.errors import Refused, Unavailable
from shared.ports import ActionResult, Check, Clock, Standing

log = structlog.get_logger()

_FIRST_POLL_S, _LONGEST_POLL_S = 0.01, 0.25


class LocalEvictor:
    """The EvictionActuator of the host. It works without the process that watches the pod, which may be dead."""

    def __init__(
        self, state_dir: Path, cgroups: Cgroups, clock: Clock, *, top: str = ROOT, reason: str = EVICTED
    ) -> None:
        """`reason` is stored with each pod that is ended, for its owner."""
        self._pods, self._cgroups, self._clock, self._top = LocalPods(state_dir), cgroups, clock, top
        self._reason = reason
        self._deadlines: dict[str, float] = {}
        self._endings: dict[str, asyncio.Task[None]] = {}

    async def lookup(self, pod: Pod) -> Standing:
        """Return the state of this UID; "gone" only when it has no process left and nothing will start one."""
        try:
            stored = self._pods.get(pod.uid)
            alive = bool(self._cgroups.pids(pod_group(_of(stored, pod), self._top)))
        except (Unavailable, Refused, OSError):
            return "unknown"
        if stored is None or stored.status.finished:
            # A record "finished" does not count against a living process.
            return "running" if alive else "gone"
        # While its watcher lives it may be about to start a container.
        if not alive and not stored.folder.watched():
            return "gone"
        return "terminating" if stored.status.terminating else "running"

    async def evict(
        self, pod: Pod, *, grace_s: float, dry_run: bool = False, why: str = "", last_check: Check = lambda: None
    ) -> ActionResult:
        """Send TERM to every process now, KILL to what is left after the grace; return at once.

        A repeated call continues the same ending, with the earlier of both deadlines, also after a restart. `why` is
        stored with the pod for its owner.
        """
        standing = await self.lookup(pod)
        if standing == "unknown":
            return ActionResult(
                "failed", f"pod {pod.key} ({pod.uid}): its record or cgroup cannot be read; not touched"
            )
        if dry_run:
            return ActionResult("gone" if standing == "gone" else "accepted", f"pod {pod.key} is {standing}")
        if standing == "gone":
            finish_if_over(self._pods, self._cgroups, pod.uid, top=self._top)
            return ActionResult("gone", f"pod {pod.key} ({pod.uid}) has no process left")
        last_check()
        try:
            # The mark before the first signal: from here on no container of the pod starts.
            self._pods.mark_terminating(pod.uid, grace_s, self._reason, why)
            stored = self._pods.get(pod.uid)
        except Unavailable as error:
            return ActionResult("failed", str(error))
        deadline = self._clock.monotonic() + grace_s
        self._deadlines[pod.uid] = min(deadline, self._deadlines.get(pod.uid, deadline))
        if pod.uid not in self._endings:
            ending = asyncio.create_task(self._end(_of(stored, pod)), name=f"evict-{pod.uid}")
            self._endings[pod.uid] = ending
            ending.add_done_callback(lambda task: self._forget(pod, task))
        return ActionResult("accepted", f"pod {pod.key}: TERM now, KILL after {grace_s:g} s")

    async def ended(self, uid: str) -> None:
        """Wait until the ending of a pod that was begun here is through."""
        if ending := self._endings.get(uid):
            await asyncio.wait({ending})

    async def close(self) -> None:
        """Stop waiting; pods that are being ended stay marked, and the next `evict` continues."""
        endings = list(self._endings.values())
        for ending in endings:
            ending.cancel()
        await asyncio.gather(*endings, return_exceptions=True)

    def _forget(self, pod: Pod, ending: asyncio.Task[None]) -> None:
        del self._endings[pod.uid], self._deadlines[pod.uid]
        if not ending.cancelled() and (error := ending.exception()):
            log.error("pod.ending_failed", pod=pod.key, pod_uid=pod.uid, why=str(error))

    async def _end(self, pod: Pod) -> None:
        group = pod_group(pod, self._top)
        signal_group(self._cgroups, group, signal.SIGTERM)
        await self._poll(lambda: not self._cgroups.pids(group), lambda: self._deadlines[pod.uid])
        if kill_group(self._cgroups, group):
            log.info("pod.killed", pod=pod.key, pod_uid=pod.uid)
        # Again and again: a process that forks between two listings leaves a child that neither had.
        await self._poll(lambda: not kill_group(self._cgroups, group), lambda: float("inf"))
        await self._poll(
            lambda: finish_if_over(self._pods, self._cgroups, pod.uid, top=self._top) and self._cgroups.remove(group),
            lambda: float("inf"),
        )

    async def _poll(self, done: Callable[[], bool], deadline: Callable[[], float]) -> None:
        pause_s = _FIRST_POLL_S
        while not done() and (left_s := deadline() - self._clock.monotonic()) > 0:
            await self._clock.sleep(min(pause_s, left_s))
            pause_s = min(pause_s * 2, _LONGEST_POLL_S)


class SimEvictor:
    """The EvictionActuator of the simulator: marks the pod; the simulator ends it after its grace."""

    def __init__(self, state_dir: Path) -> None:
        self._pods = LocalPods(state_dir)

    async def lookup(self, pod: Pod) -> Standing:
        """Return the state of this UID in the store."""
        try:
            stored = self._pods.get(pod.uid)
        except (Unavailable, Refused):
            return "unknown"
        if stored is None or stored.status.finished:
            return "gone"
        return "terminating" if stored.status.terminating else "running"

    async def evict(
        self, pod: Pod, *, grace_s: float, dry_run: bool = False, why: str = "", last_check: Check = lambda: None
    ) -> ActionResult:
        """Mark the pod as terminating."""
        standing = await self.lookup(pod)
        if standing == "unknown":
            return ActionResult("failed", f"pod {pod.key} ({pod.uid}): its record cannot be read; not touched")
        if not dry_run and standing == "running":
            last_check()
            self._pods.mark_terminating(pod.uid, grace_s, EVICTED, why)
        return ActionResult("gone" if standing == "gone" else "accepted", f"pod {pod.key} is {standing}")


def finish_if_over(pods: LocalPods, cgroups: Cgroups, uid: str, *, top: str = ROOT) -> bool:
    """Close a pod whose watcher is dead and whose processes have ended; True when nothing of it is left.

    While the watcher lives it does this itself, with the exit codes that only a parent sees.

    Raises:
        Unavailable: the pod's record cannot be read.
    """
    stored = pods.get(uid)
    if stored is None or stored.status.finished:
        return True
    group = pod_group(stored.record.pod, top)
    if stored.folder.watched() or cgroups.pids(group) or not cgroups.remove(group):
        return False
    lost = {} if stored.status.reason else {"reason": "Lost", "message": "the process that watched this pod was killed"}
    try:
        stored.folder.finish(**lost)
    except FileNotFoundError:  # removed meanwhile
        return True
    return True


def _of(stored: StoredPod | None, pod: Pod) -> Pod:
    """Return the pod as this host created it, because the caller's view of its class must not lead to another
    cgroup."""
    return stored.record.pod if stored else pod
