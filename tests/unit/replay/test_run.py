"""The replay itself: what is judged, what is seen, and what is told of it."""

from dataclasses import replace
from typing import Any, Never

import pytest
from fixture_types import NewSample
from hypothesis import given
from hypothesis import strategies as st
from present import present
from replay_world import NewTrace, make_trace

from services.advisor.core.model.machine import Bounds
from services.advisor.core.model.view import View
from services.advisor.policies.canonical import CanonicalSettings
from services.advisor.registry import known_policies
from shared.errors import BadConfig, Refused
from sublet.replay.batch import BatchRules
from sublet.replay.contender import Contender, PolicyContender, Sizes, StaticContender, policy_of
from sublet.replay.oracle import OracleContender
from sublet.replay.peers import PEERS
from sublet.replay.run import replay
from sublet.replay.score import Score
from sublet.replay.traces.frames import Frame, Trace, load_of

RULES = BatchRules()


class Scripted:
    """Gives tenants these cores, frame by frame, and keeps what it was shown."""

    def __init__(self, *tenants: float) -> None:
        self.name = "scripted"
        self.tenants = list(tenants)
        self.seen: list[list[float | None]] = []

    def bounds(self, trace: Trace) -> Bounds:
        return Bounds.of(trace.cpus, smt=trace.smt)

    def start(self, trace: Trace) -> "Scripted":
        return self

    def decide(self, view: View, system_cores: float, now_s: float) -> Sizes:
        self.seen.append([c.cpu.usage_cores for c in view.containers])
        cores = self.tenants.pop(0) if len(self.tenants) > 1 else self.tenants[0]
        return Sizes(cores, 48 - cores, 48 - cores)


def score(trace: Trace, contender: Contender, rules: BatchRules = RULES) -> dict[str, Any]:
    outcome = replay([trace], [contender], rules)
    return outcome.rows[0].score.figures(outcome.oracle)


def test_demand_is_judged_by_the_sizes_that_were_decided_before_it(trace: NewTrace) -> None:
    """Grown too late: the frame that shows the demand is the one that violates."""
    found = score(trace([5.0, 20.0, 20.0]), Scripted(10.0, 30.0, 30.0))
    assert (found["violation_s"], found["violation_core_s"]) == (2.0, 20.0)
    assert score(trace([5.0, 20.0, 20.0]), Scripted(20.0))["violation_s"] == 0.0


def test_the_first_frame_is_not_judged(trace: NewTrace) -> None:
    assert score(trace([47.0]), Scripted(4.0))["violation_s"] == 0.0


def test_a_contender_sees_no_more_use_than_it_gave(trace: NewTrace) -> None:
    contender = Scripted(10.0)
    replay([trace([8.0, 40.0, 8.0])], [contender], RULES)
    assert contender.seen[:2] == [[8.0], [10.0]]


def test_offered_time_and_size_changes_are_summed(trace: NewTrace) -> None:
    found = score(trace([1.0] * 4, step_s=1800.0), Scripted(8.0, 8.0, 16.0, 8.0))
    assert found["offered_core_hours"] == pytest.approx((40 + 40 + 32) / 2)
    assert found["offered_percent"] == pytest.approx(100 * 112 / 144, abs=0.01)
    assert found["size_changes"] == 2


def test_an_offer_that_is_held_down_after_a_spike_is_withheld_and_one_that_tenants_need_is_not(
    trace: NewTrace,
) -> None:
    spike = [5.0, 20.0, 20.0, 5.0, 5.0, 5.0]
    found = score(trace(spike), Scripted(8.0, 24.0, 24.0, 22.0, 8.0, 8.0))
    assert (found["offer_falls"], found["withheld_s"], found["regrow_mean_s"]) == (1, 4.0, 4.0)
    at_once = score(trace(spike), Scripted(8.0, 24.0, 24.0, 8.0, 8.0, 8.0))
    assert (at_once["offer_falls"], at_once["withheld_s"]) == (1, 2.0)
    learned = score(trace([5.0, 20.0, *[5.0] * 400]), Scripted(8.0, 24.0))
    assert (learned["offer_falls"], learned["withheld_s"]) == (1, 600.0)
    calm = score(trace(spike), Scripted(8.0))
    assert (calm["offer_falls"], calm["regrow_mean_s"]) == (0, None)


def test_batch_work_that_the_offer_no_longer_carries_is_evicted(trace: NewTrace) -> None:
    found = score(trace([1.0] * 80), Scripted(8.0, 28.0))
    assert found["evictions"] == 10


def test_time_after_a_gap_does_not_count(sample: NewSample) -> None:
    frames = [Frame(0.0, 0.0, sample([1.0])), Frame(100.0, 0.0, sample([40.0])), Frame(102.0, 2.0, sample([1.0]))]
    outcome = replay([Trace("n", 48, True, lambda: iter(frames))], [Scripted(8.0)], RULES)
    assert outcome.node_s == 2.0
    assert outcome.rows[0].score.violation_s == 0.0


def test_a_first_pass_without_rates_decides_nothing(sample: NewSample) -> None:
    first = sample([None]).model_copy(update={"window_s": None})
    frames = [Frame(0.0, 0.0, first), Frame(2.0, 2.0, sample([3.0], 2, 2.0))]
    contender = Scripted(8.0)
    outcome = replay([Trace("n", 48, True, lambda: iter(frames))], [contender], RULES)
    assert contender.seen == [[3.0]]
    assert outcome.node_s == 0.0


def test_shared_cpus_are_the_tenants_as_far_as_no_batch_pod_uses_them() -> None:
    sizes = Sizes(48, 20, 20, shared_cores=20)
    assert [sizes.room_cores(wanted) for wanted in (0, 12, 40)] == [48, 36, 28]
    assert Sizes(30, 18, 18).room_cores(40) == 30


def test_what_tenants_use_is_at_least_what_their_pool_uses(sample: NewSample) -> None:
    one = sample([2.0, None], cpu_usage_cores=9.0)
    assert (load_of(one).tenants_cores, load_of(one).system_cores) == (2.0, 7.0)
    pooled = one.model_validate(one.model_dump() | {"pools": [{"pool": "share", "cpu_usage_cores": 5.0}]})
    assert load_of(pooled).tenants_cores == 5.0
    assert load_of(sample([2.0])).system_cores == 0.0


def test_nodes_add_up_and_the_plotted_one_is_found(trace: NewTrace) -> None:
    traces = [trace([1.0, 1.0], node="a"), trace([30.0, 30.0, 30.0], node="b")]
    outcome = replay(traces, [Scripted(10.0)], RULES, plot_node="b")
    assert (outcome.nodes, outcome.frames, outcome.plotted, outcome.node_s) == (("a", "b"), 5, "b", 6.0)
    assert outcome.rows[0].score.violation_core_s == 80.0
    curve = present(outcome.rows[0].curve)
    assert list(curve.at_s) == [2.0, 4.0]
    assert list(curve.violated) == [1, 1]


def test_a_policy_that_raises_ends_the_replay_with_its_name_and_moment(trace: NewTrace) -> None:
    def broken(*_args: object) -> Never:
        raise ZeroDivisionError("no cores")

    chosen = policy_of("canonical")
    policy = replace(chosen.choice.policy, name="mine", judge=broken)
    mine = PolicyContender("mine:a=1", replace(chosen.choice, policy=policy))
    with pytest.raises(Refused, match="mine:a=1: node1 at 0 s: policy 'mine' raised ZeroDivisionError: no cores"):
        replay([trace([1.0])], [mine], RULES)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("canonicl", "did you mean 'canonical'"),
        ("canonical:usage_factor", "NAME:key=value"),
        ("canonical:usage_factr=2", "usage_factr"),
        ("canonical:usage_factor=.nan", "usage_factor"),
        ("canonical:usage_factor=0.5", "usage_factor"),
        ("canonical:reserve_cores=-1", "reserve_cores"),
    ],
)
def test_a_policy_that_cannot_be_used_is_refused(text: str, word: str) -> None:
    with pytest.raises(BadConfig, match=word):
        policy_of(text)


def test_settings_of_the_policy_and_of_the_advisor_are_told_apart(trace: NewTrace) -> None:
    chosen = policy_of("canonical:usage_factor=2,reserve_cores=8").choice
    assert isinstance(chosen.policy_settings, CanonicalSettings)
    assert (chosen.policy_settings.usage_factor, chosen.settings.reserve_cores) == (2.0, 8)
    more = replay([trace([4.0] * 3)], [policy_of("canonical"), policy_of("canonical:reserve_cores=12")], RULES)
    assert more.rows[0].score.offered_core_s > more.rows[1].score.offered_core_s


def test_the_oracle_rounds_the_next_demand_up_and_offers_whole_pods(trace: NewTrace) -> None:
    """It knows the 21 cores of the second frame when it decides on the first."""
    found = score(trace([5.0, 21.0, 4.0]), OracleContender(pod_cores=3.0), BatchRules(pod_cores=3.0))
    assert (found["violation_s"], found["oracle_percent"]) == (0.0, 100.0)
    # 48 - 22 CPUs for eight pods of 3 cores, then 48 - 4 for fourteen.
    assert found["offered_core_hours"] == round((24 + 42) * 2.0 / 3600, 3)


def test_every_row_says_its_part_of_what_the_oracle_runs(trace: NewTrace) -> None:
    wanted = [8.0] * 1000  # The oracle runs 40 cores.
    assert score(trace(wanted), Scripted(28.0))["oracle_percent"] == 50.0
    assert score(trace([48.0] * 3), Scripted(28.0))["oracle_percent"] is None


def test_a_promise_that_is_not_kept_wins_nothing(trace: NewTrace) -> None:
    class Boaster(Scripted):
        def decide(self, view: View, system_cores: float, now_s: float) -> Sizes:
            return replace(super().decide(view, system_cores, now_s), offered_cores=40.0)

    wanted = [8.0] * 1000
    honest, boaster = score(trace(wanted), Scripted(28.0)), score(trace(wanted), Boaster(28.0))
    assert boaster["offered_percent"] > honest["offered_percent"]
    assert boaster["batch_core_hours"] == honest["batch_core_hours"]
    assert (boaster["offer_kept_percent"], honest["offer_kept_percent"]) == (50.0, 100.0)


def test_work_of_evicted_pods_is_lost(trace: NewTrace) -> None:
    found = score(trace([1.0] * 100, step_s=30.0), Scripted(*[8.0] * 50, 28.0))
    # Ten pods of 2 cores are evicted after 52 frames; in the last two all twenty run on half of their CPUs.
    assert (found["evictions"], found["finished_pods"], found["life_before_eviction_s"]) == (10, 10, 1560.0)
    assert found["wasted_core_hours"] == pytest.approx(10 * 2 * (50 + 1) * 30 / 3600, abs=0.001)
    assert found["goodput_core_hours"] == pytest.approx(
        found["batch_core_hours"] - found["wasted_core_hours"], abs=0.0015
    )


def test_episodes_and_the_largest_shortage_are_counted(trace: NewTrace) -> None:
    found = score(trace([1.0, 12.0, 13.0, 1.0, 11.0, 1.0]), Scripted(10.0))
    assert (found["violation_s"], found["episodes"], found["largest_shortage_cores"]) == (6.0, 2, 3.0)
    assert found["largest_queue_core_s"] == 2 * 2 + 2 * 3


def test_sums_are_in_the_row_so_that_documents_add_up(trace: NewTrace) -> None:
    found = score(trace([12.0] * 3, step_s=1800.0), Scripted(10.0))
    assert (found["tenants_core_hours"], found["room_core_hours"], found["machine_core_hours"]) == (12.0, 10.0, 48.0)


ORACLE_ROW = OracleContender()


EVERYBODY = [*map(policy_of, known_policies()), *PEERS.values(), StaticContender(), ORACLE_ROW]


@pytest.mark.parametrize("contender", EVERYBODY, ids=lambda contender: contender.name)
@given(wanted=st.lists(st.floats(0, 60), min_size=2, max_size=25))
def test_laws_of_every_contender(contender: Contender, wanted: list[float]) -> None:
    """The same twice; nobody gives more than the machine; what was missing is what was wanted above the room."""
    trace = make_trace(wanted, step_s=30.0)
    first, again = (replay([trace], [contender], RULES, plot_node="").rows[0] for _ in range(2))
    assert first == again
    found: Score = first.score
    assert 0 <= found.wasted_core_s <= found.batch_core_s + 1e-6
    assert contender is not ORACLE_ROW or max(wanted) > 48 or found.violation_s == 0
    assert found.offered_core_s <= found.machine_core_s
    assert found.batch_core_s <= found.offered_core_s + 1e-6
    assert found.batch_core_s + found.tenants_core_s - found.violation_core_s <= found.machine_core_s + 1e-6
    curve = present(first.curve)
    missing = sum(max(0.0, w - r) for w, r in zip(curve.wanted_cores, curve.room_cores, strict=True))
    assert found.violation_core_s == pytest.approx(30.0 * missing, abs=1e-3)
    assert found.violation_s == 30.0 * sum(curve.violated)
