"""The rate of each node's heartbeats: each node has its own bucket, so a flood from one does not affect the others."""

from collections.abc import Collection
from dataclasses import dataclass, field

from shared.core.evictions.intents import TokenBucket

MAX_HEARTBEAT_BYTES = 8 << 10
"""A heartbeat of five services, each with a sentence about its fault, takes some 2 kB."""
HEARTBEATS_PER_S, HEARTBEAT_BURST = 2.0, 20
"""Of one node. An agent sends one every two seconds, and once more when a service turns well or unwell."""
MOST_NODES = 100_000
"""Names of nodes that are listened to at a time: whoever makes some up fills no more room than that."""
CONFIG_NEWS_PER_S, CONFIG_NEWS_BURST = 0.1, 10
"""How often one node may report another configuration; missed reports are found by the resync."""


@dataclass(slots=True)
class NodeRate:
    """Token buckets by node; a new node has a full one."""

    per_s: float
    burst: int
    _buckets: dict[str, TokenBucket] = field(default_factory=dict)

    def admit(self, node: str, now_s: float) -> bool:
        """Whether one more of this node is taken now."""
        bucket = self._buckets.get(node) or TokenBucket(self.burst, now_s)
        rest = bucket.spend(now_s, capacity=self.burst, per_s=self.per_s)
        if rest is None:
            return False
        self._buckets[node] = rest
        return True

    def knows(self, node: str) -> bool:
        """Whether a node has a bucket."""
        return node in self._buckets

    def __len__(self) -> int:
        """How many nodes have a bucket."""
        return len(self._buckets)

    def retain(self, nodes: Collection[str]) -> None:
        """Forget all others."""
        for gone in self._buckets.keys() - set(nodes):
            del self._buckets[gone]
