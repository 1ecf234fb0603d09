"""What a central tells the others of the nodes that it heard: all of it, in bounded parts, and nothing twice news."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.central.core.heartbeats.ears import ROUNDS
from services.central.core.heartbeats.readiness import Ledger, record
from services.central.core.heartbeats.rounds import OwnRounds, take_told
from shared.contracts.cluster.heard import MAX_ROUND_BYTES, HeardNodes, HeardRound
from shared.contracts.readiness import ConfigRefusal, Readiness, ServiceHealth
from shared.errors import Refused

NOW_S = 1000.0
AT = datetime(2026, 1, 1, 12, tzinfo=UTC)
BOOT = "0123456789abcdef"


def beat(node: str = "n1", seq: int = 1, **more: Any) -> Readiness:
    given_or_usual = {"boot_id": BOOT, "sent_at": AT, "ready": True, "mode": "enforce", **more}
    return Readiness(node=node, seq=seq, **given_or_usual)


def service(name: str = "qrm", **more: Any) -> ServiceHealth:
    return ServiceHealth(service=name, **{"ok": True, "config_hash": "0123456789ab", "config_revision": 3, **more})


class Teller:
    """A central that hears, and one that is told."""

    def __init__(self) -> None:
        self.ledger: Ledger = {}
        self.own = OwnRounds()
        self.other: Ledger = {}

    def hear(self, readiness: Readiness, shard: int | None = 1, now_s: float = NOW_S) -> None:
        assert record(self.ledger, readiness, now_s) == "new"
        heartbeat = self.ledger[readiness.node]
        heartbeat.shard = shard
        self.own.hear(readiness, heartbeat)

    def parts(self, now_s: float = NOW_S) -> list[bytes]:
        """The next round, as it is sent."""
        parts = self.own.next_round(now_s)
        envelope: dict[str, Any] = {"node": "central-a", "boot_id": BOOT, "sent_at": AT, "round": 1, "probe_age_s": 0.0}
        return [
            HeardRound(**envelope, seq=seq, part=seq, parts=len(parts), nodes=nodes).encode()
            for seq, nodes in enumerate(parts)
        ]

    def told(self, now_s: float = NOW_S, old: tuple[str, ...] = ()) -> dict[str, bool]:
        """The nodes of which the next round has news for the other, and whether their configuration changed."""
        found: dict[str, bool] = {}
        for part in self.parts(now_s):
            for said in HeardRound.decode(part).nodes:
                found |= dict(take_told(self.other, said, now_s, lambda node, _at: node in old))
        return found


def test_all_that_a_ledger_has_of_a_node_is_told() -> None:
    teller = Teller()
    ill = service("evictor", ok=False, why="no sample", config_refused=ConfigRefusal(revision=9, why="no such key"))
    teller.hear(beat("n1", services=(service(), ill)))
    teller.hear(beat("n2", ready=False, mode=None), shard=None)
    assert teller.told(NOW_S + 0.5) == {"n1": True, "n2": True}
    for node, heard in teller.ledger.items():
        told = teller.other[node]
        assert told.gate is not heard.gate
        assert (told.gate.boot_id, told.gate.seq) == (heard.gate.boot_id, heard.gate.seq)
        told.gate = heard.gate
        assert told == heard


def test_a_word_is_told_in_three_rounds_and_is_news_once() -> None:
    teller = Teller()
    teller.hear(beat())
    assert teller.told() == {"n1": True}
    for _ in range(ROUNDS - 1):
        assert sum(len(said.nodes) for part in teller.own.next_round(NOW_S) for said in part) == 1
    assert teller.own.next_round(NOW_S) == [()]


@pytest.mark.parametrize("lost", [0, 1])
def test_rounds_that_are_lost_are_in_the_next(lost: int) -> None:
    teller = Teller()
    teller.hear(beat())
    for _ in range(lost + 1):
        teller.parts()
    assert teller.told(NOW_S + 2) == {"n1": True}
    assert teller.other["n1"].heard_at_s == pytest.approx(NOW_S)


def test_the_newest_word_counts_and_none_makes_a_node_older() -> None:
    teller = Teller()
    teller.hear(beat(seq=1), now_s=NOW_S - 1)
    (early,) = teller.parts(NOW_S)
    teller.hear(beat(seq=2, services=(service(),)), now_s=NOW_S)
    assert teller.told(NOW_S) == {"n1": True}
    for said in HeardRound.decode(early).nodes:
        assert list(take_told(teller.other, said, NOW_S + 5, lambda *_: False)) == []
    assert teller.other["n1"].heard_at_s == NOW_S


def test_what_was_sent_too_long_ago_by_its_nodes_clock_is_no_news() -> None:
    teller = Teller()
    teller.hear(beat("n1"))
    teller.hear(beat("n2"))
    assert teller.told(old=("n1",)) == {"n2": True}
    assert set(teller.other) == {"n2"}


def test_an_earlier_life_of_a_node_is_no_news() -> None:
    teller = Teller()
    teller.hear(beat(seq=9))
    teller.told()
    record(teller.other, beat(seq=1, boot_id="f" * 16), NOW_S)
    assert teller.told(NOW_S + 1) == {}


def test_the_nodes_of_a_large_shard_are_told_whole_in_parts_that_the_bus_takes() -> None:
    teller = Teller()
    names = [f"ip-10-{number // 256}-{number % 256}.eu-west-1.compute.internal" for number in range(30_000)]
    for name in names:
        teller.hear(beat(name, seq=123_456))
    parts = teller.parts()
    assert len(parts) > 4
    assert max(map(len, parts)) < MAX_ROUND_BYTES
    assert sorted(node for part in parts for said in HeardRound.decode(part).nodes for node in said.nodes) == sorted(
        names
    )


WORDS = st.text(max_size=400)
SERVICES = st.lists(
    st.builds(
        ServiceHealth, service=WORDS, ok=st.booleans(), why=WORDS, config_hash=st.none() | WORDS,
        config_revision=st.none() | st.integers(0, 10**4000),
        config_refused=st.none() | st.builds(ConfigRefusal, revision=st.integers(0), why=st.text(max_size=200)),
    ),
    max_size=8,
)  # fmt: skip


@given(SERVICES, st.integers(0, 10**4000), st.datetimes(timezones=st.just(UTC)))
def test_whatever_a_node_says_is_told_and_read(services: list[ServiceHealth], seq: int, sent_at: datetime) -> None:
    teller = Teller()
    teller.hear(beat("n1", seq, sent_at=sent_at, services=tuple(services)))
    teller.hear(beat("n2"))
    assert max(map(len, teller.parts())) < MAX_ROUND_BYTES
    assert set(teller.told()) == {"n1", "n2"}


def test_times_at_the_ends_of_the_calendar_are_told() -> None:
    teller = Teller()
    for number, text in enumerate(("0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59.999999-23:59")):
        teller.hear(beat(f"n{number}", sent_at=datetime.fromisoformat(text)))
    assert set(teller.told()) == {"n0", "n1"}


COLUMNS: dict[str, list[Any]] = {
    "nodes": ["n1"], "boot_ids": [BOOT], "seqs": [1], "sent_ms": [0], "age_ms": [0]
}  # fmt: skip


@pytest.mark.parametrize(
    "wrong",
    [
        {"nodes": ["n1", "n2"]}, {"nodes": ["../n1"]}, {"boot_ids": ["x"]}, {"seqs": [-1]}, {"sent_ms": [10**18]},
        {"age_ms": [-1]}, {"shard": 16}, {"failing": ["x" * 301]}, {"failing": ["x"] * 6}, {"mode": "maybe"},
    ],
    ids=str,
)  # fmt: skip
def test_a_round_that_cannot_be_true_is_refused_whole(wrong: dict[str, Any]) -> None:
    good = HeardNodes(ready=True, **COLUMNS)
    message = HeardRound(node="a", boot_id=BOOT, seq=1, sent_at=AT, round=1, probe_age_s=0.0, nodes=(good,))
    document = message.model_dump(mode="json")
    assert HeardRound.decode(message.encode()) == message
    document["nodes"][0] |= wrong
    with pytest.raises(Refused):
        HeardRound.decode(json.dumps(document).encode())


def test_more_nodes_than_there_is_room_for_are_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("services.central.core.heartbeats.rounds.MOST_NODES", 2)
    teller = Teller()
    for number in range(4):
        teller.hear(beat(f"n{number}", sent_at=AT + timedelta(seconds=number)))
    assert len(teller.told()) == 2
    assert len(teller.other) == 2
