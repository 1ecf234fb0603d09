"""The pace of actions: a token bucket (docs/facts/katalyst-cluster.md#lost-agents).

The bucket is `shared.core.evictions.intents.TokenBucket`, which a ledger stores, so that a restart refills nothing.
"""

from dataclasses import dataclass

from shared.core.evictions.intents import TokenBucket


@dataclass(frozen=True, slots=True)
class Pace:
    """Actions per second, and the largest burst after a rest."""

    per_s: float
    burst: int = 1

    def spend(self, bucket: TokenBucket, now_s: float) -> TokenBucket | None:
        """The bucket after one action, or None when none may be taken now."""
        # A rate of 0 means "none", also for a token that was saved before.
        if self.per_s <= 0:
            return None
        return bucket.spend(now_s, capacity=self.burst, per_s=self.per_s)
