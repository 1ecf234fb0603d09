"""Policies that raise, return nonsense, or cannot be loaded: nothing of it reaches the pools."""

import math
import sys
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any, NoReturn

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.advisor.core.model.machine import Bounds
from services.advisor.core.model.reasons import Reasons
from services.advisor.core.model.view import View
from services.advisor.core.policy import Demand, Policy, PolicySettings
from services.advisor.core.round.decide import SizingRules, decide
from services.advisor.core.round.guard import ConfiguredPolicy, judged
from services.advisor.policies import canonical
from services.advisor.registry import outside_policies
from services.advisor.settings import choose
from shared.contracts.envelope import Reason
from shared.errors import BadConfig, Refused

VIEW = View(Bounds.of(48, smt=True), tenants_usage_cores=20.0)
FALLBACK = ConfiguredPolicy(canonical.POLICY, canonical.CanonicalSettings())


def saying(answer: Any) -> Policy[Any, Any]:
    """A policy whose judge returns this, or calls it where it can be called."""
    judge = lambda *_: answer() if callable(answer) else answer  # noqa: E731
    return Policy("odd", PolicySettings, lambda: 0, judge)


def explode() -> NoReturn:
    raise ZeroDivisionError("of all things")


def demand(cores: Any, memory_bytes: Any = 0, why: Any = ()) -> Demand:
    """What a policy without checked types may return."""
    return Demand(cores, memory_bytes, why)


class Pages(int):
    """A whole number of another type, as those of numpy are."""


def mute() -> list[Reason]:
    """Reasons as a policy of a wheel may make them: pydantic refuses a list among the numbers."""
    return [Reason.model_validate({"rule": "r", "numbers": {"a": [1]}})]


def late(make: Any) -> tuple[int, Demand]:
    """An answer whose reasons are made when they are read."""
    return 0, Demand(1.0, 0, Reasons(make))


LATE = [
    pytest.param(late(explode), "raised ZeroDivisionError in a reason: of all things", id="raises"),
    pytest.param(late(mute), "raised ValidationError in a reason: ", id="refused by the message"),
    pytest.param(late(lambda: ["because"]), "returned why is not a tuple of Reason", id="no reason"),
    pytest.param(late(lambda: 7), "raised TypeError in a reason: ", id="nothing to go through"),
]
NONSENSE = [
    pytest.param((0, Demand(math.nan, 0)), "cores nan", id="NaN"),
    pytest.param((0, Demand(math.inf, 0)), "cores inf", id="infinite"),
    pytest.param((0, Demand(-1.0, 0)), "cores -1.0", id="negative"),
    pytest.param((0, demand("8")), "cores '8'", id="a text"),
    pytest.param((0, Demand(True, 0)), "cores True", id="a truth"),
    pytest.param((0, demand(None)), "cores None", id="nothing"),
    pytest.param((0, Demand(1.0, -1)), "memory_bytes -1", id="negative memory"),
    pytest.param((0, demand(1.0, math.nan)), "memory_bytes nan", id="memory that is no whole number"),
    pytest.param((0, demand(1.0, 0, ("because",))), "why is not", id="a reason that is none"),
    pytest.param((0, demand(1.0, 0, [Reason(rule="r")])), "why is not", id="a list of reasons, which may change"),
    pytest.param((0, Demand(1.0, 0, (), -1.0)), "reclaim_quota_cores -1.0", id="a negative quota"),
    pytest.param((0, Demand(1.0, 0, (), math.nan)), "reclaim_quota_cores nan", id="a quota that is no number"),
    pytest.param((0, Demand(1.1e6, 0)), "cores 1100000.0", id="more cores than any machine has"),
    pytest.param((0, Demand(1.0, (1 << 60) + 1)), f"memory_bytes {(1 << 60) + 1}", id="more memory"),
    pytest.param((0, Demand(1.0, True)), "memory_bytes True", id="memory that is a truth"),
    pytest.param((0, Demand(1.0, 0, now_cores=-0.5)), "now_cores -0.5", id="a negative need of now"),
    pytest.param((0, Demand(1.0, 0, now_cores=math.inf)), "now_cores inf", id="an infinite need of now"),
    pytest.param((0, Demand(1.0, 0, now_cores=True)), "now_cores True", id="a need of now that is a truth"),
    pytest.param((0, Demand(1.0, 0, most_offered_ratio=1.01)), "most_offered_ratio 1.01", id="more than all"),
    pytest.param((0, Demand(1.0, 0, most_offered_ratio=-0.1)), "most_offered_ratio -0.1", id="less than nothing"),
    pytest.param((0, Demand(1.0, 0, most_offered_ratio=True)), "most_offered_ratio True", id="a ratio of truth"),
    pytest.param((0, Demand(1.0, 0), 0), "tuple instead of", id="too much"),
    pytest.param(Demand(1.0, 0), "Demand instead of", id="no state"),
    pytest.param(None, "NoneType instead of", id="no answer"),
    pytest.param((0, 8.0), "tuple instead of", id="no demand"),
]


@pytest.mark.parametrize(("answer", "says"), NONSENSE)
def test_nonsense_is_refused_by_name(answer: object, says: str) -> None:
    with pytest.raises(Refused, match=f"policy 'odd' returned {says}") as refusal:
        judged(saying(answer), 0, VIEW, 0.0, PolicySettings())
    assert refusal.value.reason == "policy_nonsense"


@pytest.mark.parametrize(("answer", "says"), [case for case in NONSENSE if isinstance(case.values[0], tuple)])
def test_nonsense_with_reasons_that_are_made_later_is_refused_as_well(answer: tuple[Any, ...], says: str) -> None:
    """As every policy of ours gives them, and most answers pass at one look."""
    state, found, *more = answer
    if isinstance(found, Demand) and found.why == ():
        found = replace(found, why=Reasons(tuple))
    with pytest.raises(Refused, match=f"policy 'odd' returned {says}"):
        judged(saying((state, found, *more)), 0, VIEW, 0.0, PolicySettings())


@pytest.mark.parametrize("cores", [0.0, 1e6])
@pytest.mark.parametrize("memory_bytes", [0, 1 << 60])
@pytest.mark.parametrize("ratio", [0.0, 1.0])
@pytest.mark.parametrize("why", [(), Reasons(tuple)], ids=["reasons", "reasons made later"])
def test_amounts_up_to_their_bounds_pass(cores: float, memory_bytes: int, ratio: float, why: Any) -> None:
    made = Demand(cores, memory_bytes, why, now_cores=cores, most_offered_ratio=ratio)
    assert judged(saying((0, made)), 0, VIEW, 0.0, PolicySettings())[1] == made


def test_a_policy_goes_on_from_its_own_state_and_begins_with_its_first_one() -> None:
    counting = Policy("odd", PolicySettings, lambda: 7, lambda state, *_: (state + 1, Demand(1.0, 0)))
    assert [judged(counting, state, VIEW, 0.0, PolicySettings())[0] for state in (None, 0, 41)] == [8, 1, 42]


def test_numbers_of_other_kinds_are_numbers() -> None:
    _, found = judged(saying((0, demand(Fraction(5, 2), 7))), 0, VIEW, 0.0, PolicySettings())
    assert (found.cores, type(found.cores), found.memory_bytes) == (2.5, float, 7)
    _, found = judged(saying((0, demand(1.0, Pages(7)))), 0, VIEW, 0.0, PolicySettings())
    assert (found.memory_bytes, type(found.memory_bytes)) == (7, int)
    asked = replace(demand(1.0), reclaim_quota_cores=Fraction(5, 2))  # type: ignore[arg-type]
    assert judged(saying((0, asked)), 0, VIEW, 0.0, PolicySettings())[1] == asked


@pytest.mark.parametrize("odd", [saying(explode), Policy("odd", PolicySettings, explode, lambda *_: (0, Demand(0, 0)))])
def test_a_policy_that_raises_is_refused_with_its_words(odd: Policy[PolicySettings, object]) -> None:
    with pytest.raises(Refused, match="policy 'odd' raised ZeroDivisionError: of all things") as refusal:
        judged(odd, None, VIEW, 0.0, PolicySettings())
    assert refusal.value.reason == "policy_raised"


@pytest.mark.parametrize(("answer", "says"), LATE)
def test_a_reason_that_cannot_be_made_is_a_failure_of_its_policy(answer: object, says: str) -> None:
    odd = ConfiguredPolicy(saying(answer), PolicySettings())
    done = decide(VIEW, 0.0, odd, SizingRules(fallback=FALLBACK), None)
    assert done.fields()["policy"] == "canonical"
    assert done.failed.startswith(f"policy 'odd' {says}")
    assert done.why[0].rule == f"{done.failed}; canonical decides"


def test_where_nobody_reads_them_reasons_are_not_made() -> None:
    odd = ConfiguredPolicy(saying(late(explode)), PolicySettings())
    assert decide(VIEW, 0.0, odd, SizingRules(says_why=False), None).policy == "odd"


@pytest.mark.parametrize("answer", [explode, *[case.values[0] for case in NONSENSE]])
def test_the_round_is_decided_by_canonical_and_goes_on_from_the_last_sizes(answer: object) -> None:
    rules = SizingRules(fallback=FALLBACK)
    last = decide(VIEW, 0.0, ConfiguredPolicy(canonical.POLICY, canonical.CanonicalSettings()), rules, None)
    calm = View(VIEW.bounds, tenants_usage_cores=1.0)
    done = decide(calm, 1.0, ConfiguredPolicy(saying(answer), PolicySettings()), rules, last)
    assert (last.sizes.share_cpus, done.sizes.share_cpus) == (30, 28)
    assert (done.policy, done.failed[:12]) == ("canonical", "policy 'odd'")
    assert done.why[0].rule == f"{done.failed}; canonical decides"


def test_without_somebody_to_stand_in_the_failure_is_raised() -> None:
    with pytest.raises(Refused, match="odd"):
        decide(VIEW, 0.0, ConfiguredPolicy(saying(explode), PolicySettings()), SizingRules(), None)


@given(st.one_of(st.none(), st.text(), st.floats(), st.integers(), st.tuples(st.floats(), st.floats())))
def test_whatever_a_policy_returns_the_sizes_are_those_of_the_machine(answer: int | tuple[float, float] | None) -> None:
    done = decide(
        VIEW, 0.0, ConfiguredPolicy(saying((0, answer)), PolicySettings()), SizingRules(fallback=FALLBACK), None
    )
    assert (done.sizes.share_cpus, done.sizes.reclaim_cpus) == (30, 18)


@given(st.floats(), st.floats())
def test_whatever_demand_a_policy_makes_the_pools_stay_inside_the_machine(cores: float, quota: float) -> None:
    done = decide(
        VIEW,
        0.0,
        ConfiguredPolicy(saying((0, Demand(cores, 0, (), quota))), PolicySettings()),
        SizingRules(fallback=FALLBACK),
        None,
    )
    assert 4 <= done.sizes.share_cpus <= 44
    assert done.sizes.share_cpus + done.sizes.reclaim_cpus == 48
    assert 0 <= done.fields()["reclaimed_cpu_millis"] <= 44_000


WHEEL = {
    "outside_good": "from services.advisor.core.policy import *\n"
    "POLICY = Policy('outside_good', PolicySettings, lambda: None, lambda s, v, n, c: (None, Demand(16.0, 0)))\n",
    "outside_raises": "raise RuntimeError('not today')\n",
    "outside_text": "POLICY = 'a text'\n",
    "outside_other": "from services.advisor.core.policy import *\n"
    "POLICY = Policy('another', PolicySettings, lambda: None, lambda s, v, n, c: (None, Demand(16.0, 0)))\n",
    "canonical": "raise RuntimeError('a name that is taken must not even be imported')\n",
}


@pytest.fixture
def wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], bool]:
    """An installed wheel that registers policies; the result says whether a module of it has been imported."""
    monkeypatch.syspath_prepend(str(tmp_path))
    info = tmp_path / "outside-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: outside\nVersion: 1.0\n")
    points = [f"{name} = wheel_{name}:POLICY" for name in WHEEL]
    (info / "entry_points.txt").write_text("\n".join(["[sublet.advisor.policies]", *points, ""]))
    for name, text in WHEEL.items():
        (tmp_path / f"wheel_{name}.py").write_text(text)
        monkeypatch.delitem(sys.modules, f"wheel_{name}", raising=False)
    return lambda name: f"wheel_{name}" in sys.modules


def test_a_wheel_registers_policies_and_none_is_imported_before_it_is_chosen(wheel: Callable[[str], bool]) -> None:
    assert {name for name in outside_policies(["canonical"]) if name.startswith("outside")} == set(WHEEL) - {
        "canonical"
    }
    assert choose({}).policy.name == "adaptive"
    assert not any(wheel(name) for name in WHEEL)
    choice = choose({"policy": "outside_good"})
    assert wheel("outside_good")
    assert not wheel("outside_raises")
    assert (choice.policy.name, choice.problems) == ("outside_good", ())
    done = decide(VIEW, 0.0, ConfiguredPolicy(choice.policy, choice.policy_settings), choice.rules, None)
    assert done.sizes.share_cpus == 20


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("outside_raises", "policy 'outside_raises' (wheel_outside_raises:POLICY) cannot be loaded: RuntimeError: not"),
        ("outside_text", "is a str, not a Policy"),
        ("outside_other", "calls itself 'another'"),
    ],
)
def test_a_broken_one_is_named_and_canonical_decides_in_its_mode(
    wheel: Callable[[str], bool], name: str, says: str
) -> None:
    assert not wheel(name)
    choice = choose({"policy": name, "policies": {name: {"mode": "observe", "speed": 3}}})
    assert choice.policy.name == "canonical"
    assert says in choice.problems[0]
    assert choice.policy_settings.mode == "observe"
    done = decide(VIEW, 0.0, ConfiguredPolicy(choice.policy, choice.policy_settings), choice.rules, None)
    assert says in done.why[0].rule


def test_settings_of_a_policy_from_outside_are_checked(wheel: Callable[[str], bool]) -> None:
    assert not wheel("outside_good")
    with pytest.raises(BadConfig, match="outside_good"):
        choose({"policies": {"outside_good": {"speed": 3}}})


def test_an_unknown_name_is_refused_with_the_one_that_was_meant(wheel: Callable[[str], bool]) -> None:
    assert not wheel("outside_good")
    with pytest.raises(BadConfig, match="did you mean 'outside_good'"):
        choose({"policy": "outside_goood"})


def test_reasons_survive() -> None:
    why = (Reason(rule="r", numbers={"a": 1}),)
    assert judged(saying((0, Demand(1.0, 0, why))), 0, VIEW, 0.0, PolicySettings())[1].why == why
