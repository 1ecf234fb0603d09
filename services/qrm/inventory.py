"""The pod inventory lists the pods of the node and when each came."""

from collections.abc import Sequence

from services.qrm.conditions import READ_IN_PART, Conditions
from shared.contracts.pod import Pod
from shared.errors import Unavailable
from shared.ports import Clock, PodSource

_LONG_AGO_S = float("-inf")


class PodInventory:
    """The pods of the node as last read; where they cannot be read, the last known ones stay."""

    def __init__(self, source: PodSource, clock: Clock, conditions: Conditions) -> None:
        self._source, self._clock, self._conditions = source, clock, conditions
        self._generation: int | None = None
        self._came_s: dict[str, float] = {}
        self.pods: Sequence[Pod] = ()

    @property
    def known(self) -> bool:
        """Whether the pods were ever read."""
        return self._generation is not None

    @property
    def generation(self) -> int:
        """A number that changes with the pods.

        Raises:
            Unavailable: it cannot be read.
        """
        return self._source.generation()

    def read(self) -> None:
        """Read the pods again if they have changed."""
        try:
            generation = self._source.generation()
            if generation != self._generation:
                self.pods = self._source.pods()
                # Those that run when qrm starts have ramped up in the life before.
                now_s = self._clock.monotonic() if self.known else _LONG_AGO_S
                self._came_s = {pod.uid: self._came_s.get(pod.uid, now_s) for pod in self.pods}
                self._generation = generation
                self._conditions.set(READ_IN_PART, _read_in_part(self.pods))
        except Unavailable as error:
            self._conditions.set("PodsUnavailable", str(error))
        else:
            self._conditions.set("PodsUnavailable", "")

    def listed(self) -> Sequence[Pod]:
        """The pods as last read, for whoever asks again and again."""
        return self.pods

    def came_within(self, seconds: float) -> set[str]:
        """UIDs of the pods that came in the last so many seconds."""
        since_s = self._clock.monotonic() - seconds
        return {uid for uid, came_s in self._came_s.items() if came_s > since_s}


def _read_in_part(pods: Sequence[Pod]) -> str:
    """Which pods say what was left out; empty where none does."""
    found = sorted((pod.key, pod.unread) for pod in pods if pod.unread)
    if not found:
        return ""
    key, unread = found[0]
    others = f"; {len(found) - 1} more pods are read in part" if len(found) > 1 else ""
    return f"pod {key}: left out: {'; '.join(unread)}{others}"
