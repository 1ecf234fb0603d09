"""Who hears which shard of the heartbeats, how it is handed over, and what is known while nobody hears one."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.central.core.heartbeats.ears import ALIVE_S, ROUND_S, ROUNDS, OtherCentral, OtherCentrals, ears_of
from services.central.core.heartbeats.listening import BusProbe, ShardsHeard
from services.central.core.heartbeats.readiness import Assessment, Heard, Heartbeat, assess
from services.central.core.lost_nodes.guards import Places
from services.central.core.lost_nodes.rules import Rules
from shared.contracts.cluster.heard import Ear, HeardRound

RULES = Rules()
NOW_S = 1000.0


def told(name: str, number: int, *shards: int, **more: int) -> HeardRound:
    """A round that claims these shards, each for an hour."""
    ears = tuple(Ear(shard=shard, listening_s=3600.0) for shard in shards)
    boot_id = f"{name.encode().hex():0>8}"
    return HeardRound(
        node=name, boot_id=boot_id, seq=number, sent_at=datetime(2026, 1, 1, tzinfo=UTC), round=number,
        probe_age_s=0.5, ears=ears, **more,
    )  # fmt: skip


def claiming(**rounds: int) -> OtherCentral:
    """Another central that has told so many rounds of each shard."""
    return OtherCentral(claimed={int(shard[1:]): count for shard, count in rounds.items()})


@pytest.mark.parametrize(
    ("me", "held", "others", "shards", "mine"),
    [
        pytest.param("a", (), {}, 3, {0, 1, 2}, id="alone"),
        pytest.param("b", (), {"a": claiming()}, 4, {1, 3}, id="in turn, by name"),
        pytest.param("c", (), {"a": claiming(), "b": claiming()}, 2, set(), id="one more than shards"),
        pytest.param("a", (0, 1), {"b": claiming()}, 2, {0, 1}, id="its successor has told nothing yet"),
        pytest.param("a", (0, 1), {"b": claiming(s1=2)}, 2, {0, 1}, id="its successor has told two rounds"),
        pytest.param("a", (0, 1), {"b": claiming(s1=3)}, 2, {0}, id="its successor has told three rounds"),
        pytest.param("a", (), {"b": claiming(s0=9, s1=9)}, 2, {0}, id="its own, whoever else hears it as well"),
        pytest.param("a", (0,), {"b": claiming()}, 2, {0}, id="nothing that it did not hear and is not its own"),
    ],
)
def test_a_central_hears_its_own_shards_and_those_that_it_has_not_handed_over(
    me: str, held: tuple[int, ...], others: Mapping[str, OtherCentral], shards: int, mine: set[int]
) -> None:
    assert ears_of(me, held, others, shards) == mine


def test_a_central_lives_while_whole_rounds_of_it_are_heard() -> None:
    shards, others = ShardsHeard(2), OtherCentrals()
    others.record_part(told("b", 1, 1, part=0, parts=2), shards, NOW_S, RULES)
    assert others.alive(NOW_S) == {}
    others.record_part(told("b", 1, 1, part=1, parts=2), shards, NOW_S, RULES)
    assert set(others.alive(NOW_S + ALIVE_S)) == {"b"}
    assert others.alive(NOW_S + ALIVE_S + 0.1) == {}


@pytest.mark.parametrize("lost", [0, 1, 2])
def test_a_round_of_which_a_part_is_lost_does_not_count(lost: int) -> None:
    shards, others = ShardsHeard(1), OtherCentrals()
    for part in range(3):
        if part != lost:
            others.record_part(told("b", 7, 0, part=part, parts=3), shards, NOW_S, RULES)
    assert others.alive(NOW_S) == {}
    assert shards.unheard(NOW_S, RULES) == (0,)


def test_a_claim_counts_from_the_start_after_a_pause_and_after_a_restart() -> None:
    other = OtherCentral()
    for number in range(ROUNDS):
        other.record_part(told("b", number, 0), NOW_S + number, RULES)
    assert other.claimed == {0: ROUNDS}
    later_s = NOW_S + ROUNDS + ALIVE_S
    other.record_part(told("b", 9, 0), later_s, RULES)
    assert other.claimed == {0: 1}
    other.record_part(told("c", 0, 0), later_s + 1, RULES)  # another boot
    assert other.claimed == {0: 1}
    other.record_part(told("c", 1), later_s + 2, RULES)
    assert other.claimed == {}


def test_what_was_told_while_its_rounds_were_not_heard_counts_as_not_heard() -> None:
    shards, others = ShardsHeard(1), OtherCentrals()
    others.record_part(told("b", 0, 0), shards, NOW_S, RULES)
    others.record_part(told("b", 1, 0), shards, NOW_S + 1, RULES)
    assert shards.since_s(0) == NOW_S
    back_s = NOW_S + 1 + RULES.probe_max_age_s + 1  # it has heard the shard all the time, and nobody has heard it
    assert shards.unheard(back_s, RULES) == (0,)
    others.record_part(told("b", 30, 0), shards, back_s, RULES)
    others.record_part(told("b", 31, 0), shards, back_s + 1, RULES)
    assert shards.unheard(back_s + 1, RULES) == ()
    assert shards.since_s(0) == back_s


def test_two_deaf_times_do_not_add_up() -> None:
    """Who hears a shard tells how old its own probe is: no more silence is tolerated than of central's own probe."""
    shards = ShardsHeard(1)
    shards.join(0, 0.0, NOW_S, RULES)  # told at NOW_S + 14 by a central that was deaf since
    assert shards.unheard(NOW_S + RULES.probe_max_age_s, RULES) == ()
    assert shards.unheard(NOW_S + RULES.probe_max_age_s + 0.1, RULES) == (0,)
    shards.join(0, NOW_S + RULES.probe_max_age_s + 0.1, NOW_S + 20, RULES)
    assert shards.since_s(0) == NOW_S + RULES.probe_max_age_s + 0.1


def silent(shard: int | None, heard_at_s: float = 0.0) -> Heartbeat:
    return Heartbeat(heard_at_s, ready=True, failing=(), shard=shard)


def look(shards: ShardsHeard, ledger: dict[str, Heartbeat]) -> Assessment:
    return assess(Heard(ledger, BusProbe(NOW_S, 0.0), Places(), shards), Assessment(), NOW_S, RULES)


def test_silence_counts_since_its_shard_was_heard_without_a_gap() -> None:
    shards = ShardsHeard(2)
    shards.join(0, 100.0, NOW_S, RULES)
    shards.join(1, NOW_S - 29, NOW_S, RULES)
    found = look(shards, {"n0": silent(0), "n1": silent(1), "never": silent(None), "made-up": silent(7)}).nodes
    assert (found["n0"].state, found["n0"].silent_s) == ("late", NOW_S - 100)
    assert {found[node].state for node in ("n1", "never", "made-up")} == {"unknown"}


def test_a_shard_that_nobody_hears_makes_the_bus_suspect() -> None:
    shards = ShardsHeard(2)
    shards.join(0, 0.0, NOW_S, RULES)
    found = look(shards, {"n0": silent(0), "fresh": silent(1, NOW_S)})
    assert found.paused == ("no central has heard shard 1 of the heartbeats within 15 s",)
    assert {node: one.state for node, one in found.nodes.items()} == {"n0": "unknown", "fresh": "ready"}


SPANS = st.lists(st.tuples(st.integers(0, 1), st.floats(0, 990), st.floats(0, 60)), max_size=12)


@given(SPANS, st.floats(0, NOW_S), st.sampled_from([0, 1, None]))
def test_a_node_is_late_only_after_its_shard_was_heard_for_so_long(
    spans: list[tuple[int, float, float]], heard_at_s: float, shard: int | None
) -> None:
    shards = ShardsHeard(2)
    for which, since_s, for_s in sorted(spans, key=lambda span: span[1] + span[2]):
        shards.join(which, since_s, min(since_s + for_s, NOW_S), RULES)
    node = look(shards, {"n": silent(shard, heard_at_s)}).nodes["n"]
    if node.state != "late":
        return
    # Every moment of the late time but tolerated gaps lies in a span of the shard, and nothing was heard in it.
    for which in (0, 1) if shard is None else (shard,):
        at_s = NOW_S - RULES.late_s
        mine = sorted((since_s, min(since_s + for_s, NOW_S)) for one, since_s, for_s in spans if one == which)
        for since_s, until_s in mine:
            if since_s <= at_s + RULES.probe_max_age_s:
                at_s = max(at_s, until_s)
        assert at_s >= NOW_S - RULES.probe_max_age_s
    assert heard_at_s < NOW_S - RULES.late_s


@dataclass
class Replica:
    """A central by the rules alone."""

    name: str
    phase_s: float
    held: dict[int, float] = field(default_factory=dict)
    others: OtherCentrals = field(default_factory=OtherCentrals)
    rounds: int = 0

    def tick(self, shards: ShardsHeard, now_s: float) -> HeardRound:
        wanted = ears_of(self.name, self.held, self.others.alive(now_s), len(shards))
        for shard in wanted - self.held.keys():
            self.held[shard] = now_s
        for shard in self.held.keys() - wanted:
            del self.held[shard]
        self.rounds += 1
        ears = tuple(Ear(shard=shard, listening_s=now_s - since_s) for shard, since_s in self.held.items())
        message = told(self.name, self.rounds)
        return message.model_copy(update={"ears": ears, "probe_age_s": 0.0})


class Centrals:
    """Some centrals, and somebody who hears their rounds and no shard himself."""

    def __init__(self, shards: int) -> None:
        self.count = shards
        self.heard, self._seen = ShardsHeard(shards), OtherCentrals()
        self.living = {"m": Replica("m", 0.5)}
        self.now_s, self.killed_s, self.whole_s = 0.0, float("-inf"), float("inf")

    def pass_by(self, seconds: float) -> None:
        end_s = self.now_s + seconds
        while self.now_s < end_s:
            self.now_s = round(self.now_s + 0.25, 2)
            for one in list(self.living.values()):
                if round((self.now_s - one.phase_s) % ROUND_S, 2) < 0.25:
                    self._tell(one)
            if self.ears() >= set(range(self.count)):
                self.whole_s = min(self.whole_s, self.now_s)
            else:
                assert self.now_s < 2 or self.now_s - self.killed_s <= ALIVE_S + 2 * ROUND_S

    def _tell(self, one: Replica) -> None:
        message = one.tick(self.heard, self.now_s)
        self._seen.record_part(message, self.heard, self.now_s, RULES)
        for other in self.living.values():
            if other is not one:
                other.others.record_part(message, ShardsHeard(self.count), self.now_s, RULES)

    def ears(self) -> set[int]:
        return {shard for one in self.living.values() for shard in one.held}

    def change(self, who: str, phase_s: float) -> None:
        """It is killed, or starts where it does not live."""
        if who not in self.living:
            self.living[who] = Replica(who, phase_s)
        elif len(self.living) > 1:
            del self.living[who]
            self.killed_s = self.now_s


CHANGES = st.lists(st.tuples(st.sampled_from("abcd"), st.floats(8, 20), st.floats(0, 0.99)), min_size=1, max_size=6)
"""Who starts or is killed, after how long, and when in a second it speaks."""


@given(st.integers(1, 5), CHANGES)
def test_each_shard_is_heard_whenever_anybody_lives_and_a_hand_over_has_no_gap(
    shards: int, changes: list[tuple[str, float, float]]
) -> None:
    centrals = Centrals(shards)
    for who, after_s, phase_s in changes:
        centrals.pass_by(after_s)
        centrals.change(who, phase_s)
    centrals.pass_by(20.0)
    # Neither a new one nor a killed one began the time anew: its successor was there within what is tolerated.
    assert centrals.heard.unheard(centrals.now_s, RULES) == ()
    assert centrals.heard.since_s(None) <= centrals.whole_s + ROUND_S
    # In rest each shard has one ear.
    assert sorted(shard for one in centrals.living.values() for shard in one.held) == list(range(shards))
