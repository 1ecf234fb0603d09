"""What must hold between the settings of metrics and of those that decide by its samples."""

from typing import Any

import pytest

from services.metrics.settings import MetricsSettings
from sublet.validation.together import problems_together


@pytest.mark.parametrize(
    ("section", "longest_s"),
    [
        pytest.param({}, 4.0, id="by default two seconds below the readers' bounds"),
        pytest.param({"period_s": 0.5}, 1.0, id="a short period stays short at rest"),
        pytest.param({"period_s": 2.5}, 4.0, id="twice the period up to four seconds"),
        pytest.param({"period_s": 3.0}, 4.5, id="one and a half of a long one"),
        pytest.param({"rest_period_s": 5.0}, 5.0, id="as set"),
        pytest.param({"rest_period_s": 1.0}, 2.0, id="switched off"),
    ],
)
def test_the_period_at_rest_follows_the_period_unless_it_is_set(section: dict[str, Any], longest_s: float) -> None:
    assert MetricsSettings.model_validate(section).longest_period_s == longest_s


@pytest.mark.parametrize(
    ("values", "keys"),
    [
        pytest.param({}, [], id="the defaults"),
        pytest.param({"metrics": {"rest_period_s": 5.9}}, [], id="just below"),
        pytest.param({"metrics": {"rest_period_s": 6}}, ["metrics.rest_period_s"] * 2, id="not below"),
        pytest.param({"metrics": {"period_s": 4, "rest_period_s": 4}}, [], id="set, so that a long period fits"),
        pytest.param({"metrics": {"period_s": 4}}, ["metrics.period_s"] * 2, id="one and a half of a long period"),
        pytest.param(
            {"metrics": {"rest_period_s": 9}, "advisor": {"max_input_age_s": 12}, "evictor": {"max_input_age_s": 9}},
            ["metrics.rest_period_s"],
            id="too long for one of both",
        ),
        pytest.param({"evictor": {"max_input_age_s": 2}}, ["evictor.max_input_age_s"], id="the reader's was lowered"),
        pytest.param({"metrics": {"period_s": 4}, "advisor": {"max_input_age_s": "x"}}, [], id="a section is broken"),
        pytest.param({"metrics": None, "advisor": None, "evictor": None}, [], id="empty sections"),
    ],
)
def test_a_node_at_rest_stays_fresh_for_its_readers(values: dict[str, Any], keys: list[str]) -> None:
    assert [problem.key for problem in problems_together(values)] == keys
