"""Conditions as taints, and how long they are held: the rules one by one, and laws."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kind_door import ask
from pydantic import ValidationError

from services.evictor.core.plugin import Pressure
from services.evictor.core.taints.held_conditions import DetectorFinding, HeldConditions
from shared.contracts.kube.taint import Cause, Taint

KEY = "node.katalyst.kubewharf.io/"
NOW = datetime(2026, 1, 1, tzinfo=UTC)
MEMORY, CPU = "MemoryPressure/NoSchedule", "CPUPressure/NoSchedule"
TRANSITION_S, MAX_AGE_S, STEP_S = 30.0, 5.0, 1.0


def condition(name: str, *effects: str, type: str = "NODE") -> dict[str, Any]:  # noqa: A002
    return {"name": name, "type": type, "effects": list(effects)}


@pytest.mark.parametrize(
    ("conditions", "node", "cnr"),
    [
        pytest.param([], [], [], id="none"),
        pytest.param([condition("B", "NoSchedule"), condition("A", "NoSchedule")], ["A:NoSchedule", "B:NoSchedule"], [],
                     id="by key"),
        pytest.param([condition("A", "PreferNoSchedule", "NoExecute", "NoSchedule")],
                     ["A:NoExecute", "A:NoSchedule", "A:PreferNoSchedule"], [], id="then by effect"),
        pytest.param([condition("A", "NoSchedule", "NoSchedule"), condition("A", "NoSchedule")], ["A:NoSchedule"], [],
                     id="once"),
        pytest.param([condition("A", "noschedule", "", "Evict")], [], [], id="no such effect"),
        pytest.param([condition("A", "reclaimed_cores/NoSchedule")], [], [], id="a level is not for the Node"),
        pytest.param([condition("A", "reclaimed_cores/NoSchedule", "reclaimed_cores/NoSchedule", type="CNR")], [],
                     ["reclaimed_cores/A:NoSchedule"], id="CNR"),
        pytest.param([condition("A", "shared_cores/NoSchedule", "NoSchedule", "reclaimed_cores/Evict",
                                "reclaimed_cores/NoSchedule/x", "/NoSchedule", type="CNR")], [], [], id="wrong level"),
    ],
)  # fmt: skip
def test_taints_of_conditions(conditions: list[dict[str, Any]], node: list[str], cnr: list[str]) -> None:
    found = ask("condition_taints", conditions=conditions)
    assert [f"{t['key'].removeprefix(KEY)}:{t['effect']}" for t in found["node_taints"]] == node
    told = [f"{t['qos_level']}/{t['key'].removeprefix(KEY)}:{t['effect']}" for t in found["cnr_taints"]]
    assert told == cnr


@pytest.mark.parametrize("wrong", [condition("A", type="POD"), condition(""), {"name": "A", "type": "NODE"}])
def test_what_is_no_condition_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        ask("condition_taints", conditions=[wrong])


@given(st.permutations([condition("A", "NoSchedule", "NoExecute"), condition("B", "NoExecute"),
                        condition("A", "reclaimed_cores/NoSchedule", type="CNR")]))  # fmt: skip
def test_the_order_of_conditions_means_nothing(conditions: list[dict[str, Any]]) -> None:
    assert ask("condition_taints", conditions=conditions) == ask("condition_taints", conditions=conditions[::-1])


@pytest.mark.parametrize(
    ("last_s", "now_s", "period_s", "held"),
    [
        (0, 0, None, True), (0, 299.9, None, True), (0, 300, None, False), (0, 301, None, False),
        (100, 110, 10, False), (100, 109, 10, True), (5, 5, 0, False), (10, 5, 300, True),
    ],
)  # fmt: skip
def test_a_condition_is_held_for_less_than_the_whole_period(
    last_s: int, now_s: float, period_s: int | None, held: bool
) -> None:
    period = {} if period_s is None else {"transition_period_s": period_s}
    assert ask("condition_hold", last_observed_s=last_s, now_s=now_s, **period) == {"held": held}


# --- from sample to sample -------------------------------------------------------------------------------------------


def pressure(shows: str | None = MEMORY, **over: Any) -> Pressure:
    fields: dict[str, Any] = {"hard": True, "scope": "memory", "observed": 1.0, "threshold": 2.0, "condition": shows}
    return Pressure(**fields | over)


def shown(shows: str | None = MEMORY, *, confirmed: bool = True, **over: Any) -> DetectorFinding:
    return DetectorFinding(pressure(shows, **over), confirmed)


CALM, UNKNOWN = DetectorFinding("calm", False), DetectorFinding("unknown", False)


class Story:
    """Samples one after the other, a second apart unless said otherwise."""

    def __init__(self, conditions: HeldConditions | None = None) -> None:
        self.conditions, self.t_s, self.taints = conditions or HeldConditions(), 1000.0, ()

    def see(self, times: int = 1, *, after_s: float = STEP_S, **told: DetectorFinding) -> list[str]:
        for _ in range(times):
            self.t_s += after_s
            self.conditions = self.conditions.observe(
                told, self.t_s, transition_s=TRANSITION_S, max_input_age_s=MAX_AGE_S
            )
        return self.keys

    @property
    def keys(self) -> list[str]:
        return [f"{t.key.removeprefix(KEY)}/{t.effect}" for t in self.conditions.taints((), NOW)]


def test_it_begins_once_confirmed() -> None:
    story = Story()
    assert story.see(a=shown(confirmed=False)) == []
    assert story.see(a=shown()) == [MEMORY]


def test_soft_pressure_taints_as_hard_does() -> None:
    assert Story().see(a=shown(CPU, hard=False)) == [CPU]


def test_it_ends_when_it_was_not_seen_for_the_whole_period() -> None:
    story = Story()
    story.see(a=shown())
    assert story.see(int(TRANSITION_S) - 1, a=CALM) == [MEMORY]
    assert story.see(a=CALM) == []


def test_seen_again_also_unconfirmed_the_period_starts_anew() -> None:
    story = Story()
    story.see(a=shown())
    story.see(20, a=CALM)
    story.see(a=shown(confirmed=False))
    assert story.see(int(TRANSITION_S) - 1, a=CALM) == [MEMORY]
    assert story.see(a=CALM) == []


def test_a_pressure_without_or_with_another_condition_counts_as_not_seen() -> None:
    story = Story()
    story.see(a=shown())
    assert story.see(20, a=shown(None)) == [MEMORY]
    assert story.see(10, a=shown(CPU)) == [CPU]


@pytest.mark.parametrize("silence", [{"a": UNKNOWN}, {"a": UNKNOWN, "b": CALM}])
def test_silence_neither_begins_it_nor_ends_it_nor_counts(silence: dict[str, Any]) -> None:
    story = Story()
    assert story.see(10, **silence) == []
    story.see(a=shown())
    story.see(10, a=CALM)
    assert story.see(1000, **silence) == [MEMORY]
    assert story.see(int(TRANSITION_S) - 11, a=CALM) == [MEMORY]
    assert story.see(a=CALM) == []


def test_time_without_samples_does_not_count() -> None:
    story = Story()
    story.see(a=shown())
    assert story.see(100, after_s=MAX_AGE_S + 1, a=CALM) == [MEMORY]
    assert story.see(int(TRANSITION_S) - 1, a=CALM) == [MEMORY]
    assert story.see(a=CALM) == []


def test_another_plugins_silence_holds_nothing() -> None:
    story = Story()
    story.see(a=shown(), b=UNKNOWN)
    assert story.see(int(TRANSITION_S), a=CALM, b=UNKNOWN) == []


def test_one_taint_for_two_plugins_as_long_as_one_of_them_stands_behind_it() -> None:
    story = Story()
    story.see(a=shown(observed=3.0), b=shown(threshold=9.0))
    (taint,) = story.conditions.taints((), NOW)
    assert taint.causes == (
        Cause(plugin="a", scope="memory", observed=3.0, threshold=2.0),
        Cause(plugin="b", scope="memory", observed=1.0, threshold=9.0),
    )
    story.see(int(TRANSITION_S), a=CALM, b=shown())
    (taint,) = story.conditions.taints((), NOW)
    assert [cause.plugin for cause in taint.causes] == ["b"]


def test_a_plugin_that_may_act_no_more_holds_nothing() -> None:
    story = Story()
    story.see(a=shown(), b=shown(CPU))
    assert story.see(b=CALM) == [CPU]


@pytest.mark.parametrize("wrong", ["", "MemoryPressure", "MemoryPressure/", "/NoSchedule", "MemoryPressure/Evict"])
def test_a_condition_that_is_no_name_and_effect_is_no_taint(wrong: str) -> None:
    assert Story().see(a=shown(wrong)) == []


def test_a_taint_keeps_the_time_at_which_it_was_added() -> None:
    story = Story()
    story.see(a=shown())
    first = story.conditions.taints((), NOW)
    assert first[0].time_added == NOW
    story.see(a=shown(), b=shown(), c=shown(CPU))
    later = NOW.replace(hour=1)
    assert [t.time_added for t in story.conditions.taints(first, later)] == [later, NOW]


# --- taken over from an evictor before ------------------------------------------------------------------------------


LEFT = Taint(key=f"{KEY}MemoryPressure", effect="NoSchedule", time_added=NOW)
CAUSED = LEFT.model_copy(update={"causes": (Cause(plugin="a", scope="memory", observed=1.0, threshold=2.0),)})


@pytest.mark.parametrize("left", [LEFT, CAUSED])
def test_what_was_left_behind_is_held_for_the_period(left: Taint) -> None:
    story = Story(HeldConditions().adopting((left,), 0.0))
    assert story.conditions.taints((left,), NOW) == (left,)
    assert story.see(a=CALM) == [MEMORY]
    assert story.see(int(TRANSITION_S) - 1, a=CALM) == [MEMORY]
    assert story.see(a=CALM) == []


def test_what_was_left_behind_by_a_plugin_that_knows_nothing_yet_stays() -> None:
    story = Story(HeldConditions().adopting((CAUSED,), 0.0))
    assert story.see(1000, a=UNKNOWN) == [MEMORY]


def test_what_was_left_behind_by_a_plugin_that_is_no_more_goes() -> None:
    assert Story(HeldConditions().adopting((CAUSED,), 0.0)).see(b=CALM) == []


def test_what_is_seen_already_is_not_replaced_by_what_was_left() -> None:
    story = Story()
    story.see(a=shown(observed=7.0))
    story.conditions = story.conditions.adopting((CAUSED,), story.t_s)
    assert story.conditions.taints((CAUSED,), NOW)[0].causes[0].observed == 7.0


# --- laws -----------------------------------------------------------------------------------------------------------


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["shown", "unconfirmed", "calm", "unknown"]),
        st.sampled_from([0.5, 1.0, 4.0, MAX_AGE_S, MAX_AGE_S + 1, 100.0]),
    ),
    max_size=60,
)
TELLS = {"shown": shown(), "unconfirmed": shown(confirmed=False), "calm": CALM, "unknown": UNKNOWN}


@given(STEPS)
def test_it_stands_from_its_confirmation_until_fresh_samples_were_calm_for_the_period(
    steps: list[tuple[str, float]],
) -> None:
    story, calm_s = Story(), None
    for number, (what, after_s) in enumerate(steps):
        story.see(after_s=after_s, a=TELLS[what])
        if what == "shown" or (what == "unconfirmed" and calm_s is not None):
            calm_s = 0.0
        elif what == "calm" and after_s <= MAX_AGE_S and calm_s is not None and number:
            calm_s += after_s
        if calm_s is not None and calm_s >= TRANSITION_S:
            calm_s = None
        assert bool(story.keys) == (calm_s is not None)


@given(STEPS)
def test_nothing_is_tainted_without_a_confirmed_pressure(steps: list[tuple[str, float]]) -> None:
    story = Story()
    for what, after_s in steps:
        if what != "shown":
            story.see(after_s=after_s, a=TELLS[what])
    assert story.keys == []
