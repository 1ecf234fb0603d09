"""Scenario files: what they may say, and how a mistake is named."""

from pathlib import Path
from typing import Any

import pytest

from shared.errors import Refused
from sublet.sim.scenario import BUILT_IN, Scenario, load_scenario, read_scenario


def read(**fields: Any) -> Scenario:
    return read_scenario({"name": "s", "steps": [{"at_s": 0, "say": "start"}]} | fields, source="test")


@pytest.mark.parametrize("path", sorted(BUILT_IN.glob("*.yaml")), ids=lambda path: path.stem)
def test_every_built_in_scenario_can_be_read(path: Path) -> None:
    assert load_scenario(path.stem).name == path.stem


def test_names_without_a_namespace_are_in_default() -> None:
    scenario = read(steps=[{"at_s": 1, "delete": "web"}, {"at_s": 2, "expect": {"pods": ["batch/x", "y"]}}])
    assert scenario.steps[0].delete == "default/web"
    assert scenario.steps[1].expect is not None
    assert scenario.steps[1].expect.pods == ("batch/x", "default/y")


def test_amounts_and_cpu_lists_are_normalised() -> None:
    expect = read(steps=[{"at_s": 0, "expect": {"reclaimed_millicpu": "44k", "share": "1,0,2"}}]).steps[0].expect
    assert expect is not None
    assert (expect.reclaimed_millicpu, expect.share) == (44_000, "0-2")


@pytest.mark.parametrize(
    ("fields", "word"),
    [
        pytest.param({"steps": []}, "steps", id="nothing happens"),
        pytest.param({"steps": [{"at_s": 1}]}, "apply, exec, delete, configure, expect, say", id="an empty step"),
        pytest.param({"steps": [{"at_s": -1, "say": "x"}]}, "steps.0.at_s", id="before the start"),
        pytest.param({"steps": [{"at_s": 9, "say": "x"}, {"at_s": 1, "say": "y"}]}, "comes before", id="back in time"),
        pytest.param({"steps": [{"at_s": 1, "delete": "a", "expect": {}}]}, "delete and expect", id="two things"),
        pytest.param({"steps": [{"at_s": 1, "say": "x", "within_s": 1}]}, "within_s", id="waiting for nothing"),
        pytest.param({"steps": [{"at_s": 1, "exec": {"pod": "a", "command": ["stress", "-c", "x"]}}]}, "stress -c 'x'",
                     id="an unreadable command"),
        pytest.param({"steps": [{"at_s": 1, "expect": {"share": "3-1"}}]}, "share", id="a bad CPU list"),
        pytest.param({"machine": {"memory": "lots"}}, "machine.memory", id="a bad amount"),
        pytest.param({"machine": {"memory": True}}, "machine.memory", id="a truth value is no amount"),
        pytest.param({"machine": {"sockets": 16, "cores_per_numa": 256, "threads": 4}}, "16384 CPUs", id="too large"),
        pytest.param({"machine": {"memory": "256Mi"}}, "system_memory 536870912", id="a system too large"),
        pytest.param({"machine": {"cgroup_version": 3}}, "machine.cgroup_version", id="a cgroup version that is none"),
        pytest.param({"settings": {"advisr": {}}}, "no service 'advisr'", id="an unknown service"),
        pytest.param({"steps": [{"at_s": 1, "configure": {"evictr": {}}}]}, "steps.0.configure", id="a wrong section"),
        pytest.param({"steps": [{"at_s": 9, "say": "x"}], "again_at_s": 9}, "again_at_s 9", id="anew before its end"),
        pytest.param({"colour": "red"}, "colour", id="an unknown key"),
    ],
)  # fmt: skip
def test_a_mistake_is_named_with_its_place(fields: dict[str, Any], word: str) -> None:
    with pytest.raises(Refused) as caught:
        read(**fields)
    assert word in str(caught.value)
    assert "scenario test" in str(caught.value)


@pytest.mark.parametrize("document", [None, [], "text", 3], ids=["empty", "list", "text", "number"])
def test_a_document_that_is_no_mapping_is_refused(document: Any) -> None:
    with pytest.raises(Refused, match="scenario test"):
        read_scenario(document, source="test")


def test_a_missing_file_names_the_built_in_ones(tmp_path: Path) -> None:
    with pytest.raises(Refused, match=r"no such file; built in: .*quickstart"):
        load_scenario(tmp_path / "none.yaml")
    with pytest.raises(Refused, match="no such file"):
        load_scenario("none")


def test_a_file_that_is_not_yaml_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "broken.yaml"
    path.write_text("steps: [")
    with pytest.raises(Refused, match=r"broken\.yaml"):
        load_scenario(path)
