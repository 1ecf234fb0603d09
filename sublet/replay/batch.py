"""The batch work of a replay fills the offer, ends when it is done, and cannot wait forever.

Pods of one size start as soon as a whole one fits into the offer, and end after their work; there are always more. If
the offer stays below the running pods for longer than `evict_after_s`, the youngest pods are evicted until the rest
fits. Until then they run slower, on the CPUs that exist. The work of an evicted pod is lost.
"""

import math
from collections import deque
from dataclasses import dataclass, field

POD_CORES = 2.0
EVICT_AFTER_S = 60.0
WORK_S = 1800.0


@dataclass(frozen=True, slots=True)
class BatchRules:
    """How large a batch pod is, how long its work takes, and for how long more may run than is offered."""

    pod_cores: float = POD_CORES
    evict_after_s: float = EVICT_AFTER_S
    work_s: float = WORK_S
    """Time in which a pod with all of its CPUs is done; infinite: it never ends."""


@dataclass(slots=True)
class Batch:
    """The batch pods of one node."""

    rules: BatchRules
    short_since_s: float | None = None
    """Since when the offer has been below what runs."""
    evicted: int = 0
    """Pods evicted so far."""
    finished: int = 0
    wasted_core_s: float = 0.0
    """What the evicted pods had done."""
    evicted_lives_s: float = 0.0
    """How long the evicted pods had run, added up."""
    _done_s: float = 0.0
    """Work of a pod that has been there from the beginning: all pods of a node are equally fast."""
    _starts: "deque[tuple[float, float]]" = field(default_factory=deque)
    """Of each pod, the oldest first: `_done_s` and the time when it started."""

    @property
    def pods(self) -> int:
        """How many there are."""
        return len(self._starts)

    @property
    def cores(self) -> float:
        """What the pods want together."""
        return len(self._starts) * self.rules.pod_cores

    def run(self, passed_s: float, used_cores: float) -> None:
        """Let time pass in which the pods used this many cores together; whose work is done ends."""
        if not self._starts:
            return
        self._done_s += passed_s * used_cores / self.cores
        # Steps add up with an error in the last digit; a whole frame more would be made of it.
        while self._starts and self._done_s - self._starts[0][0] >= self.rules.work_s - 1e-6:
            self._starts.popleft()
            self.finished += 1

    def offer(self, offered_cores: float, now_s: float) -> None:
        """Start what fits into an offer; evict what has not fitted for too long."""
        # A whole number of cores may come as a little less in binary fractions, and a pod would be evicted for it.
        fitting = math.floor(offered_cores / self.rules.pod_cores + 1e-9)
        if fitting >= len(self._starts):
            self._starts.extend([(self._done_s, now_s)] * (fitting - len(self._starts)))
            self.short_since_s = None
            return
        if self.short_since_s is None:
            self.short_since_s = now_s
        if now_s - self.short_since_s >= self.rules.evict_after_s:
            self._evict(len(self._starts) - fitting, now_s)
            self.short_since_s = None

    def _evict(self, pods: int, now_s: float) -> None:
        for _ in range(pods):
            done_s, started_s = self._starts.pop()
            self.wasted_core_s += (self._done_s - done_s) * self.rules.pod_cores
            self.evicted_lives_s += now_s - started_s
        self.evicted += pods
