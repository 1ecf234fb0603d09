"""Who hears which shard of the heartbeats: every central that lives in turn, by name; there is no lease for it.

Two that hear the same shard do no harm, for the newest word of a node counts. So each decides for itself, by the rounds
that it hears of the others, and gives a shard up only when its successor has told several rounds of it.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from services.central.core.heartbeats.listening import BusProbe, ShardsHeard
from services.central.core.lost_nodes.rules import Rules
from shared.contracts.cluster.heard import HeardRound

ROUND_S = 1.0
"""Between two rounds of a central."""
ROUNDS = 3
"""So many tell each word of a node, and end a hand-over."""
ALIVE_S = (ROUNDS + 0.5) * ROUND_S
"""A central whose last round is older hears nothing any more, as far as the others know."""


@dataclass(slots=True)
class OtherCentral:
    """Another central, as its rounds show it."""

    rounds: BusProbe = field(default_factory=BusProbe)
    """When its newest whole round came, and since when they come without a gap."""
    claimed: Mapping[int, int] = field(default_factory=dict)
    """How many rounds in a row it has told of each shard."""
    _boot_id: str = ""
    _newest: tuple[int, int] = (-1, -1)
    """Round and part of the newest message, while none of the round is missing."""

    @property
    def is_new(self) -> bool:
        """Whether no round of it was whole yet."""
        return self.rounds.heard_at_s is None

    def lives(self, now_s: float) -> bool:
        """Whether a round of it was heard lately."""
        return self.rounds.heard_at_s is not None and now_s - self.rounds.heard_at_s <= ALIVE_S

    def record_part(self, message: HeardRound, now_s: float, rules: Rules) -> bool:
        """Record one message; returns whether a round is whole with it."""
        follows = message.part == 0 or self._newest == (message.round, message.part - 1)
        self._newest = (message.round, message.part) if follows else (-1, -1)
        if not follows or message.part + 1 < message.parts:
            return False
        before = self.claimed if self.lives(now_s) and self._boot_id == message.boot_id else {}
        self.claimed = {ear.shard: before.get(ear.shard, 0) + 1 for ear in message.ears}
        self._boot_id, self.rounds = message.boot_id, self.rounds.returned(now_s, rules)
        return True


class OtherCentrals:
    """All others whose rounds are heard, by name."""

    def __init__(self) -> None:
        self._known: dict[str, OtherCentral] = {}

    def record_part(self, message: HeardRound, shards: ShardsHeard, now_s: float, rules: Rules) -> None:
        """Record one message: who lives, and what it certainly heard until when."""
        other = self._known.setdefault(message.node, OtherCentral())
        if not other.record_part(message, now_s, rules):
            return
        until_s, gapless_s = now_s - message.probe_age_s, other.rounds.since_s
        for ear in message.ears:
            # What it told while its rounds were not heard here is not known here.
            since_s = until_s - ear.listening_s if gapless_s is None else max(until_s - ear.listening_s, gapless_s)
            shards.join(ear.shard, since_s, until_s, rules)

    def forget(self, now_s: float, rules: Rules) -> None:
        """Drop those that were not heard for so long that their rounds begin anew."""
        for name in [name for name, one in self._known.items() if not one.is_new and not one.rounds.well(now_s, rules)]:
            del self._known[name]

    def alive(self, now_s: float) -> dict[str, OtherCentral]:
        """Those that live."""
        return {name: one for name, one in self._known.items() if one.lives(now_s)}


def ears_of(me: str, held: Collection[int], others: Mapping[str, OtherCentral], shards: int) -> frozenset[int]:
    """The shards that a central hears from now on; `others`: those that live.

    Shard i is that of the i-th of them in turn. One that it heard so far it goes on to hear until its successor has
    told `ROUNDS` rounds of it.
    """
    in_turn = sorted({me, *others})
    mine = set()
    for shard in range(shards):
        owner = in_turn[shard % len(in_turn)]
        if owner == me or (shard in held and others[owner].claimed.get(shard, 0) < ROUNDS):
            mine.add(shard)
    return frozenset(mine)
