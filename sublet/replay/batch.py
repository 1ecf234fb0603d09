"""The batch work of a replay never ends, fills what is offered, and cannot wait for ever.

Pods of one size start as soon as a whole one fits into the offer. When the offer stays below what runs for longer than
`evict_after_s`, as many pods are evicted as it takes to fit again. Until then they run, slower, on what CPUs there are.
"""

import math
from dataclasses import dataclass

POD_CORES = 2.0
EVICT_AFTER_S = 60.0


@dataclass(frozen=True, slots=True)
class BatchRules:
    """How large a batch pod is, and for how long more may run than is offered."""

    pod_cores: float = POD_CORES
    evict_after_s: float = EVICT_AFTER_S


@dataclass(frozen=True, slots=True)
class Batch:
    """The batch pods of one node."""

    pods: int = 0
    short_since_s: float | None = None
    """Since when the offer has been below what runs."""
    evicted: int = 0
    """Pods evicted so far."""

    def cores(self, rules: BatchRules) -> float:
        """What the pods want together."""
        return self.pods * rules.pod_cores


def after_offer(batch: Batch, offered_cores: float, now_s: float, rules: BatchRules) -> Batch:
    """The pods after an offer was made."""
    # A whole number of cores may come as a little less in binary fractions, and a pod would be evicted for it.
    fitting = math.floor(offered_cores / rules.pod_cores + 1e-9)
    if fitting >= batch.pods:
        return Batch(fitting, None, batch.evicted)
    since_s = now_s if batch.short_since_s is None else batch.short_since_s
    if now_s - since_s < rules.evict_after_s:
        return Batch(batch.pods, since_s, batch.evicted)
    return Batch(fitting, None, batch.evicted + batch.pods - fitting)
