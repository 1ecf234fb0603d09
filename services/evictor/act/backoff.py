"""Backs off from pods that could not be evicted a moment ago, each time twice as long."""

from dataclasses import dataclass, field

from shared.core.backoff import delay_s

BASE_S, CAP_S = 5.0, 60.0  # docs/facts/kubernetes.md#eviction-measured
FORGET_S = 600.0


@dataclass
class Backoff:
    """Failures by pod UID, and the time until which each pod is skipped."""

    _pods: dict[str, tuple[int, float]] = field(default_factory=dict)

    def add(self, uid: str, now_s: float) -> None:
        """One more failure."""
        failures = self._pods.get(uid, (0, 0.0))[0]
        self._pods[uid] = (failures + 1, now_s + delay_s(failures, base_s=BASE_S, cap_s=CAP_S, roll=1.0))

    def waiting(self, now_s: float) -> set[str]:
        """Return the pods that are skipped now."""
        return {uid for uid, (_, until_s) in self._pods.items() if now_s < until_s}

    def forget(self, now_s: float) -> None:
        """Drop the entries that are long over."""
        # Long after the pause, so that a pod that fails again soon still waits twice as long.
        self._pods = {uid: entry for uid, entry in self._pods.items() if now_s < entry[1] + FORGET_S}
