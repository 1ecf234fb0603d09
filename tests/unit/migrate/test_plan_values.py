"""The file of values that a plan makes: the chart takes it, and nothing that is there is lost."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator
from plan_documents import katalyst, koordinator

from shared.errors import Conflict
from sublet.migrate.plan.line import MigrationPlan, nested
from sublet.migrate.plan.printing import plan_table, summary, values_text, write_values
from sublet.migrate.plan.systems import PLANNERS

CHART = Path(__file__).parents[3] / "deploy/k8s/chart"
OBJECTS = {"koordinator": koordinator("AllAlpha=true"), "katalyst": katalyst()}


@pytest.fixture(params=sorted(PLANNERS))
def plan(request: pytest.FixtureRequest) -> MigrationPlan:
    system: str = request.param
    return PLANNERS[system](OBJECTS[system])


def over(below: Any, above: Any) -> Any:
    """As Helm lays one file of values over another."""
    if not isinstance(below, dict) or not isinstance(above, dict):
        return above
    return below | {key: over(below.get(key), value) for key, value in above.items()}


def test_the_chart_takes_the_values_now_and_later(plan: MigrationPlan) -> None:
    chart = yaml.safe_load((CHART / "values.yaml").read_text())
    validator = Draft202012Validator(json.loads((CHART / "values.schema.json").read_text()))
    assert validator.is_valid(chart)
    written = yaml.safe_load(values_text(plan))
    assert written == plan.values
    for values in (written, over(written, plan.later)):
        assert [error.message for error in validator.iter_errors(over(chart, values))] == []
    wrong = over(chart, {"settings": {"reporter": {"batch": {"cpu_reclaim_percent": 101}}}})
    assert not validator.is_valid(wrong)


def test_the_file_says_what_waits(plan: MigrationPlan) -> None:
    head, _, tail = values_text(plan).partition("# Once the other system no longer does these:\n")
    assert "mode: observe" in head
    waits = yaml.safe_load("\n".join(line.removeprefix("# ") for line in tail.splitlines()))
    assert (waits or {}) == plan.later


def test_another_file_is_not_written_over(tmp_path: Path) -> None:
    path = tmp_path / "values.yaml"
    write_values(path, "a: 1\n")
    write_values(path, "a: 1\n")
    with pytest.raises(Conflict, match="is there already and says something else"):
        write_values(path, "a: 2\n")
    assert path.read_text() == "a: 1\n"


def test_every_line_is_a_row_and_is_counted(plan: MigrationPlan) -> None:
    assert len(plan_table(plan, wide=False).splitlines()) == len(plan.lines) + 1
    assert summary(plan).startswith(f"{len(plan.lines)} values: ")
    assert len(plan.document()["lines"]) == len(plan.lines)


def test_of_two_lines_for_one_value_the_later_one_holds() -> None:
    plan = PLANNERS["koordinator"](OBJECTS["koordinator"])
    first = next(line for line in plan.lines if line.key)
    assert nested([first, first]) == nested([first])
