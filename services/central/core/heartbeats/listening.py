"""Since when central hears without a gap: its own probe over the bus, and each shard of the heartbeats."""

import math
from dataclasses import dataclass

from services.central.core.lost_nodes.rules import Rules


@dataclass(frozen=True, slots=True)
class BusProbe:
    """Central's own message over the bus: when it last came back, and since when without a gap.

    While central did not receive from the bus, no node can be called silent, so that time counts for none of them.
    """

    heard_at_s: float | None = None
    since_s: float | None = None

    def returned(self, now_s: float, rules: Rules) -> "BusProbe":
        """Record that the probe came back; after a gap, listening restarts."""
        # Judged before this probe counts, because the gap that ends with it restarts the listening.
        return BusProbe(now_s, self.since_s if self.well(now_s, rules) else now_s)

    def well(self, now_s: float, rules: Rules) -> bool:
        """Whether the bus can be trusted now."""
        return self.heard_at_s is not None and now_s - self.heard_at_s <= rules.probe_max_age_s

    def restarted(self, now_s: float) -> "BusProbe":
        """Restart listening, as after a change of the rules."""
        return BusProbe(self.heard_at_s, now_s if self.since_s is not None else None)

    def joined(self, since_s: float, until_s: float, rules: Rules) -> "BusProbe":
        """Record that somebody listened from one moment to another; after a gap, listening restarts."""
        if self.heard_at_s is None or self.since_s is None or since_s - self.heard_at_s > rules.probe_max_age_s:
            return BusProbe(until_s, since_s)
        # What ended before this listening began says nothing of it.
        since_s = self.since_s if until_s < self.since_s else min(self.since_s, since_s)
        return BusProbe(max(self.heard_at_s, until_s), since_s)


class ShardsHeard:
    """Each shard of the heartbeats as its own probe: until when somebody has heard it, and since when without a gap.

    Who hears it may change meanwhile. A gap is what it is for central's own probe, and no longer one is tolerated: who
    tells that it hears a shard tells how old its own probe is, so that two deaf times do not add up.
    """

    def __init__(self, shards: int) -> None:
        self._heard = [BusProbe()] * shards

    def __len__(self) -> int:
        """Into how many shards the heartbeats are divided."""
        return len(self._heard)

    def join(self, shard: int, since_s: float, until_s: float, rules: Rules) -> None:
        """Somebody has heard a shard from one moment to another; one that does not exist is nobody's."""
        if shard < len(self._heard) and since_s <= until_s:
            self._heard[shard] = self._heard[shard].joined(since_s, until_s, rules)

    def unheard(self, now_s: float, rules: Rules) -> tuple[int, ...]:
        """The shards that nobody hears."""
        return tuple(shard for shard, probe in enumerate(self._heard) if not probe.well(now_s, rules))

    def since_s(self, shard: int | None) -> float:
        """Since when a shard was heard without a gap; None, not known which: since when all of them were."""
        probes = self._heard if shard is None or shard >= len(self._heard) else [self._heard[shard]]
        return max(math.inf if probe.since_s is None else probe.since_s for probe in probes)
