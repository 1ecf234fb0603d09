"""Settings of the advisor and of its policies: checked whole, refused with the key that was probably meant."""

from typing import Any

import pytest

from services.advisor.core.model.machine import Bounds
from services.advisor.registry import known_policies
from services.advisor.settings import choose
from shared.errors import BadConfig


def test_the_defaults_are_those_of_the_tutorial() -> None:
    choice = choose({})
    assert choice.policy.name == "adaptive"
    assert choice.bounds(48, smt=True) == Bounds(48, True, 4.0, 0, True)
    assert choice.settings.rules.pace.max_down_step_cpus == 2
    assert choice.settings.rules.pace.down_period_s == 30


def test_reserves_can_be_set_instead_of_found() -> None:
    choice = choose({"reserve_cores": 1.5, "reserve_pool_cpus": 2, "reserved_memory_bytes": 7})
    assert choice.bounds(48, smt=True) == Bounds(48, True, 1.5, 2, True)
    assert choice.settings.rules.reserved_bytes == 7


def test_a_policy_gets_its_own_settings() -> None:
    section = {"policy": "canonical", "policies": {"canonical": {"usage_factor": 2, "mode": "dry-run"}}}
    assert choose(section).policy_settings.mode == "dry-run"


@pytest.mark.parametrize(
    ("section", "names"),
    [
        pytest.param({"polcy": "canonical"}, "did you mean 'policy'", id="a misspelt key"),
        pytest.param({"policy": "canonicle"}, "did you mean 'canonical'", id="a misspelt policy"),
        pytest.param({"policies": {"ramma": {}}}, "did you mean 'rama'", id="settings of an unknown policy"),
        pytest.param(
            {"policies": {"canonical": {"usage_facto": 2}}}, "did you mean 'usage_factor'", id="a policy's key"
        ),
        pytest.param({"policies": {"canonical": {"usage_factor": 0.5}}}, "usage_factor = 0.5", id="below its bound"),
        pytest.param({"policies": {"canonical": {"mode": "on"}}}, "mode", id="an unknown mode"),
        pytest.param({"reserve_cores": "all"}, "reserve_cores", id="an unknown reserve"),
        pytest.param({"reserve_cores": -1}, "reserve_cores", id="a reserve below 0"),
        pytest.param({"reserve_cores": float("nan")}, "reserve_cores", id="a reserve that is no number"),
        pytest.param({"max_ramp_down_step_cpus": 1}, "max_ramp_down_step_cpus", id="a step that could never be even"),
        pytest.param({"period_s": 0}, "period_s", id="no period"),
        pytest.param({"max_input_age_s": float("inf")}, "max_input_age_s", id="for ever"),
    ],
)
def test_settings_that_cannot_be_used_are_refused_by_name(section: dict[str, Any], names: str) -> None:
    with pytest.raises(BadConfig, match=names):
        choose(section)


@pytest.mark.parametrize("name", known_policies())
def test_every_policy_documents_its_settings(name: str) -> None:
    policy = known_policies()[name]
    assert policy.settings.__doc__
    assert policy.settings().mode == "enforce"
