"""Central's ledger: who is heard, who is late, and when nothing may be done at all."""

from datetime import UTC, datetime
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.central.core.heartbeats.listening import BusProbe
from services.central.core.heartbeats.readiness import (
    Assessment,
    Heard,
    Heartbeat,
    Ledger,
    NodeState,
    assess,
    forget,
    reconcile,
    record,
)
from services.central.core.lost_nodes.rules import Rules
from shared.contracts.readiness import Readiness, ServiceHealth

RULES = Rules()
BOOT, NEXT_BOOT = "0" * 16, "1" * 16


def beat(
    node: str = "n1", seq: int = 1, boot: str = BOOT, ready: bool = True, services: tuple[ServiceHealth, ...] = ()
) -> Readiness:
    return Readiness(
        node=node, boot_id=boot, seq=seq, sent_at=datetime(2026, 1, 1, tzinfo=UTC), ready=ready, services=services
    )


def heard(**ages_s: float) -> Ledger:
    """A ledger of ready nodes by the age of their newest heartbeat at 10 000 s."""
    return {node: Heartbeat(NOW_S - age, True, ()) for node, age in ages_s.items()}


NOW_S = 10_000.0
LISTENING = BusProbe(heard_at_s=NOW_S, since_s=0.0)


def look(
    ledger: Ledger, probe: BusProbe = LISTENING, before: Assessment | None = None, now_s: float = NOW_S
) -> Assessment:
    return assess(Heard(ledger, probe), before or Assessment(), now_s, RULES)


@pytest.mark.parametrize(
    ("first", "second", "verdict", "heard_at_s"),
    [
        pytest.param(beat(seq=1), beat(seq=2), "new", 5.0, id="the next one"),
        pytest.param(beat(seq=2), beat(seq=2), "replayed", 0.0, id="the same again"),
        pytest.param(beat(seq=2), beat(seq=1), "stale", 0.0, id="an older one"),
        pytest.param(beat(seq=9), beat(seq=1, boot=NEXT_BOOT), "new", 5.0, id="a new life of the sender"),
    ],
)
def test_the_newest_heartbeat_counts(first: Readiness, second: Readiness, verdict: str, heard_at_s: float) -> None:
    ledger: Ledger = {}
    record(ledger, first, 0.0)
    assert record(ledger, second, 5.0) == verdict
    assert ledger["n1"].heard_at_s == heard_at_s


def test_a_late_message_of_a_former_life_does_not_keep_a_node_alive() -> None:
    ledger: Ledger = {}
    for message in (beat(seq=5), beat(seq=1, boot=NEXT_BOOT)):
        record(ledger, message, 0.0)
    assert record(ledger, beat(seq=6), 9.0) == "retired"
    assert ledger["n1"].heard_at_s == 0.0


@pytest.mark.parametrize(
    ("age_s", "ready", "state"),
    [
        pytest.param(0.0, True, "ready", id="just heard"),
        pytest.param(30.0, True, "ready", id="at the bound"),
        pytest.param(30.1, True, "late", id="three heartbeats missed"),
        pytest.param(5000.0, True, "late", id="silent for very long: still only late"),
        pytest.param(0.0, False, "unready", id="says itself that it is not ready"),
        pytest.param(31.0, False, "late", id="was not ready and fell silent"),
    ],
)
def test_a_nodes_state_by_its_heartbeat(age_s: float, ready: bool, state: str) -> None:
    assessment = look({"n1": Heartbeat(NOW_S - age_s, ready, ("qrm: no pods",))})
    assert assessment.nodes["n1"].state == state


def test_an_unready_node_is_explained_by_its_services() -> None:
    ledger: Ledger = {}
    ill = (ServiceHealth(service="metrics", ok=True), ServiceHealth(service="qrm", ok=False, why="no pods"))
    record(ledger, beat(ready=False, services=ill), NOW_S)
    assert look(ledger).nodes["n1"].why == "qrm: no pods"


@pytest.mark.parametrize(
    ("revisions", "oldest"), [((3, 5), 3), ((5, 3), 3), ((4, 4), 4), ((0, 9), 0), ((3, None), None), ((), None)]
)
def test_a_node_works_with_the_configuration_of_its_service_that_is_furthest_behind(
    revisions: tuple[int | None, ...], oldest: int | None
) -> None:
    ledger: Ledger = {}
    services = [ServiceHealth(service=f"s{n}", ok=True, config_revision=r) for n, r in enumerate(revisions)]
    record(ledger, beat(services=tuple(services)), NOW_S)
    assert ledger["n1"].revision == oldest


def test_silence_has_no_word_that_could_be_acted_on() -> None:
    assert set(get_args(NodeState)) == {"ready", "unready", "late", "unknown"}


@given(
    st.dictionaries(st.sampled_from([f"n{i}" for i in range(30)]), st.floats(0, 9000)),
    st.one_of(st.none(), st.floats(0, NOW_S)),
    st.floats(0, NOW_S),
)
def test_no_verdict_from_silence_goes_beyond_late_and_none_at_all_while_central_suspects_the_bus(
    ages_s: dict[str, float], heard_at_s: float | None, since_s: float
) -> None:
    probe = BusProbe(heard_at_s, None if heard_at_s is None else min(since_s, heard_at_s))
    assessment = look(heard(**ages_s), probe)
    assert {standing.state for standing in assessment.nodes.values()} <= {"ready", "late", "unknown"}
    listened = probe.well(NOW_S, RULES) and NOW_S - (probe.since_s or 0.0) >= RULES.late_s
    if not listened:
        assert assessment.paused
        assert "late" not in {standing.state for standing in assessment.nodes.values()}


def test_time_in_which_central_suspected_the_bus_is_no_silence_of_a_node() -> None:
    ledger = heard(n1=1000.0, n2=1.0)
    back = BusProbe(heard_at_s=NOW_S, since_s=NOW_S - 20)
    assert look(ledger, back).nodes["n1"].state == "unknown"
    # 30 s after its probe came back central may count again, from then on only.
    later = NOW_S + 15
    assert look(ledger, BusProbe(later, NOW_S - 20), now_s=later).nodes["n1"].state == "late"
    assert look(ledger, BusProbe(later, NOW_S - 20), now_s=later).nodes["n1"].why.startswith("silent for 35 s")


def test_hearing_after_a_gap_starts_anew_and_without_a_gap_goes_on() -> None:
    probe = BusProbe().returned(100.0, RULES)
    assert probe == BusProbe(100.0, 100.0)
    assert probe.returned(105.0, RULES) == BusProbe(105.0, 100.0)
    assert probe.returned(121.0, RULES) == BusProbe(121.0, 121.0)
    assert probe.restarted(103.0) == BusProbe(100.0, 103.0)
    assert BusProbe().restarted(103.0) == BusProbe()


@pytest.mark.parametrize(
    ("probe", "word"),
    [
        pytest.param(BusProbe(), "probe", id="its own probe never came back"),
        pytest.param(BusProbe(NOW_S - 16, 0.0), "probe", id="its own probe is overdue"),
        pytest.param(BusProbe(NOW_S, NOW_S - 29), "listened", id="warm-up after its start"),
    ],
)
def test_a_suspect_central_pauses_whatever_the_nodes_look_like(probe: BusProbe, word: str) -> None:
    (why,) = look(heard(n1=0.0, n2=0.0), probe).paused
    assert word in why


def long_silent(bad: int, total: int) -> Ledger:
    """`bad` of `total` nodes silent for so long that they did not fall silent together."""
    return heard(**{f"n{i:03}": 1000.0 * (i + 1) % 9000 + 500 if i < bad else 0.0 for i in range(total)})


@pytest.mark.parametrize(
    ("bad", "total", "paused"),
    [
        pytest.param(0, 1, False, id="one node, well"),
        pytest.param(1, 1, True, id="a single node is never judged alone"),
        pytest.param(1, 2, False, id="one of two, with a healthy peer"),
        pytest.param(2, 2, True, id="both of two"),
        pytest.param(1, 5, False, id="20 % of five"),
        pytest.param(2, 5, True, id="40 % of five"),
        pytest.param(2, 10, False, id="20 % of ten"),
        pytest.param(3, 10, True, id="30 % of ten"),
        pytest.param(20, 100, False, id="20 % of a hundred"),
        pytest.param(21, 100, True, id="21 % of a hundred"),
        pytest.param(100, 100, True, id="everybody"),
    ],
)
def test_too_many_bad_nodes_pause_everything(bad: int, total: int, paused: bool) -> None:
    assert bool(look(long_silent(bad, total)).paused) is paused


def test_nodes_that_say_they_are_unready_count_as_bad() -> None:
    ledger = heard(n1=0.0, n2=0.0) | {f"x{i}": Heartbeat(NOW_S, False, ()) for i in range(2)}
    assert look(ledger).paused


@pytest.mark.parametrize(
    ("together", "paused"),
    [pytest.param(3, False, id="three"), pytest.param(4, True, id="four have one cause")],
)
def test_nodes_that_fall_silent_together_pause_everything(together: int, paused: bool) -> None:
    ledger = heard(**{f"n{i:02}": 40.0 + i if i < together else 0.0 for i in range(50)})
    assessment = look(ledger)
    assert bool(assessment.paused) is paused
    if paused:
        assert assessment.guards.held_until_s["cluster"] == NOW_S + RULES.sudden_pause_s


def test_a_pause_holds_until_its_cause_is_gone_for_long_enough() -> None:
    paused = look(long_silent(3, 10))
    calm = heard(**{f"n{i}": 0.0 for i in range(10)})
    soon = NOW_S + RULES.clean_s - 1
    for node in calm.values():
        node.heard_at_s = soon
    held = look(calm, BusProbe(soon, 0.0), paused, soon)
    assert held.paused == ("a pause holds for another 1 s",)
    assert look(calm, BusProbe(soon + 2, 0.0), held, soon + 2).paused == ()


def test_a_suspect_moment_does_not_end_a_pause() -> None:
    paused = look(long_silent(3, 10))
    suspect = look(heard(n1=0.0), BusProbe(), paused)
    assert look(heard(n1=0.0, n2=0.0), LISTENING, suspect).paused


def test_nodes_long_gone_leave_the_ledger() -> None:
    ledger = heard(n1=0.0, n2=5.0)
    forget(ledger, NOW_S + RULES.forget_s + 1, RULES)
    assert not ledger
    ledger = heard(n1=0.0)
    forget(ledger, NOW_S + RULES.forget_s, RULES)
    assert ledger


def test_nodes_that_there_are_but_were_never_heard_of_are_silent_from_now_on() -> None:
    ledger = heard(n1=0.0, gone=0.0)
    reconcile(ledger, ["n2", "n1"], NOW_S)
    reconcile(ledger, ["n2", "n1"], NOW_S + 5)
    assert {node: beat.heard_at_s for node, beat in ledger.items()} == {"n1": NOW_S, "n2": NOW_S}
    assert look(ledger).nodes["n2"].state == "unready"
    later = NOW_S + 31
    assert look(ledger, BusProbe(later, 0.0), now_s=later).nodes["n2"].silent_s == 31


def test_silence_is_told_only_when_it_is_certain() -> None:
    assessment = look(heard(heard=10.0, late=50.0), BusProbe(NOW_S, 0.0))
    assert {node: standing.silent_s for node, standing in assessment.nodes.items()} == {"heard": 0.0, "late": 50.0}
    suspect = look(heard(heard=10.0, late=50.0), BusProbe())
    assert {node: standing.silent_s for node, standing in suspect.nodes.items()} == {"heard": 0.0, "late": None}
    assert suspect.guards.paused == suspect.paused
    assert suspect.guards.actions_per_s == 0.0


@given(st.lists(st.tuples(st.sampled_from("abcdefgh"), st.floats(0, 200)), unique_by=lambda row: row[0]))
def test_the_order_in_which_nodes_were_heard_changes_nothing(rows: list[tuple[str, float]]) -> None:
    one, two = heard(**dict(rows)), heard(**dict(reversed(rows)))
    assert look(one) == look(two)
    assert list(look(two).others) == sorted(look(two).others)


def test_counts_name_every_state() -> None:
    assert look(heard(n1=0.0, n2=99.0)).counts() == {"ready": 1, "unready": 0, "late": 1, "unknown": 0}
