"""Pods that can be evicted in memory: what was called, what was killed, and what goes wrong on demand."""

from collections import deque
from dataclasses import dataclass, field
from typing import Literal

from shared.contracts.pod import Pod
from shared.ports import ActionResult, Check, Clock

Where = Literal["running", "terminating", "gone", "unknown"]


@dataclass
class FakeEvictor:
    """The EvictionActuator over a set of pods. A pod that is evicted ends `lives_on_s` later."""

    clock: Clock
    pods: dict[str, Pod] = field(default_factory=dict)
    """What runs, by UID."""
    lives_on_s: float = 0.0
    answers: deque[ActionResult] = field(default_factory=deque)
    """Results for the next real calls. `accepted` evicts, `gone` finds the pod gone, `unknown` as told below."""
    unknown_evicts: bool = True
    """Whether a call with an unknown outcome has had its effect."""
    rehearsals: deque[ActionResult] = field(default_factory=deque)
    """Results for the next dry runs."""
    blind: bool = False
    """Lookups find nothing out."""
    calls: list[tuple[str, str, float]] = field(default_factory=list)
    """("dry-run" or "evict", UID, grace in seconds), in order."""
    kills: list[str] = field(default_factory=list)
    """UIDs that were sent on their way, in order."""
    reasons: dict[str, str] = field(default_factory=dict)
    """What their owners were told, by UID."""
    _ends_at_s: dict[str, float] = field(default_factory=dict)

    def run(self, *pods: Pod) -> None:
        """Let pods run."""
        self.pods |= {pod.uid: pod for pod in pods}

    def running(self, uid: str) -> bool:
        """Whether this UID runs and is not on its way out."""
        return self._where(uid) == "running"

    async def lookup(self, pod: Pod) -> Where:
        """Where this UID stands."""
        return "unknown" if self.blind else self._where(pod.uid)

    async def evict(
        self, pod: Pod, *, grace_s: float, dry_run: bool = False, why: str = "", last_check: Check = lambda: None
    ) -> ActionResult:
        """Send this UID on its way, or give the answer that was prepared."""
        last_check()
        self.calls.append(("dry-run" if dry_run else "evict", pod.uid, grace_s))
        where = self._where(pod.uid)
        scripted = self.rehearsals if dry_run else self.answers
        answer = scripted.popleft() if scripted else None
        if answer is not None and answer.outcome == "gone":
            del self.pods[pod.uid]
        if not dry_run and where == "running" and self._has_effect(answer):
            self.kills.append(pod.uid)
            self.reasons[pod.uid] = why
            self._ends_at_s[pod.uid] = self.clock.monotonic() + self.lives_on_s
        if answer is not None:
            return answer
        return ActionResult("gone" if where == "gone" else "accepted")

    def _has_effect(self, answer: ActionResult | None) -> bool:
        return answer is None or answer.outcome == "accepted" or (answer.outcome == "unknown" and self.unknown_evicts)

    def _where(self, uid: str) -> Literal["running", "terminating", "gone"]:
        if uid not in self.pods:
            return "gone"
        ends_at_s = self._ends_at_s.get(uid)
        if ends_at_s is None:
            return "running"
        return "terminating" if self.clock.monotonic() < ends_at_s else "gone"
