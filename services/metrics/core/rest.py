"""`Rest` decides whether nothing moves on the node, so that the next pass may wait longer. Pure.

The node rests after several equal periods in a row: CPU use of the tenants and of the whole machine, free memory, and
the pods. An early pass, for whatever reason, restarts the count.
"""

from dataclasses import dataclass

from services.metrics.core.wakeup import MEMORY_DROP, Observation

STILL_PASSES = 5
"""Periods without news after which the node rests."""
STILL_CORES, STILL_SHARE = 0.25, 0.1
"""CPU use is equal within a quarter of a core, or a tenth if that is more: half of what triggers an early pass
(`tenant_step_cores`, `TENANT_RISE`)."""


def same_cores(before: float | None, now: float | None) -> bool:
    """Whether CPU use is about the same; not where one of both is not known."""
    return before is not None and now is not None and abs(now - before) <= max(STILL_CORES, STILL_SHARE * before)


def same_picture(before: Observation, now: Observation, total_bytes: int | None) -> bool:
    """Whether tenants, free memory and the list of pods are as they were; not where one of them is not known."""
    free, free_before = now.memory_free_bytes, before.memory_free_bytes
    if free is None or free_before is None or total_bytes is None or now.pods_generation is None:
        return False
    return (
        now.pods_generation == before.pods_generation
        and abs(free - free_before) <= MEMORY_DROP * total_bytes
        and same_cores(before.tenant_cores, now.tenant_cores)
    )


@dataclass(frozen=True, slots=True)
class Rest:
    """Passes in a row that have shown the same as the first of them, and when the last one was made."""

    first: Observation | None = None
    first_node_cores: float | None = None
    passes: int = 0
    at_s: float = float("-inf")

    def lasts(self, tried_at_s: float) -> bool:
        """Whether the node rests; not after a pass that has failed."""
        return self.passes >= STILL_PASSES and self.at_s == tried_at_s

    def after(
        self, seen: Observation, node_cores: float | None, total_bytes: int | None, at_s: float
    ) -> "Rest":  # fmt: skip
        """The rest after one more periodic pass. Compared is with the first one: a slow drift is a move as well."""
        if (
            self.first is not None
            and same_picture(self.first, seen, total_bytes)
            and same_cores(self.first_node_cores, node_cores)
        ):
            return Rest(self.first, self.first_node_cores, self.passes + 1, at_s)
        return Rest(seen, node_cores, 0, at_s)
