"""The door to the decisions: malformed questions, streams, listing, schemas, exit codes, the same bytes every time."""

import json
import math
from typing import Annotated, Any

import pytest
from jsonschema import Draft202012Validator
from pydantic import Field
from typer.testing import CliRunner

from shared.errors import Refused
from shared.whatif.decisions import Answer, DecisionKind, Question
from sublet.cli import build
from sublet.commands import whatif as command
from sublet.whatif import ask, kinds, listing, schema, stream

KNOWN = kinds()
REGULATE: dict[str, Any] = {"reserved_for_allocate_cores": 4, "lower_cpus": 4, "upper_cpus": 44, "steps": []}
TUTORIAL_NODE = {"cpus": 48, "shared_estimates_cores": []}
GUARD = {"numas": {"0": {"total_bytes": 8, "free_bytes": 1}}, "watermark_scale_factor": 10}


def one(kind: str, inputs: bytes | dict[str, Any] | str) -> dict[str, Any]:
    text = inputs if isinstance(inputs, str | bytes) else json.dumps(inputs)
    answer: dict[str, Any] = json.loads(ask(KNOWN, kind, text)[0])
    return answer


def without(inputs: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in inputs.items() if key != name}


@pytest.mark.parametrize(
    ("kind", "inputs", "code", "names"),
    [
        pytest.param("regulate", "{", "invalid_json", "line 1, column 1: not JSON", id="not JSON"),
        pytest.param("regulate", b"\xff{}", "invalid_json", "", id="not UTF-8"),
        pytest.param("regulate", "", "invalid_json", "nothing was given: want one JSON object", id="nothing"),
        pytest.param("regulate", '{"steps": NaN}', "invalid_json", "no NaN", id="NaN is no JSON"),
        pytest.param("regulate", '{"a": 1} x', "invalid_json", "nothing behind it", id="words behind it"),
        pytest.param("regulate", "{'a': 1}", "invalid_json", "double quotes", id="single quotes"),
        pytest.param("regulate", "[]", "invalid_input", "inputs", id="a list"),
        pytest.param("regulate", "null", "invalid_input", "inputs", id="null"),
        pytest.param("regulat", REGULATE, "unknown_kind", "'regulate'", id="a misspelt kind"),
        pytest.param("kind_to_come", {}, "unknown_kind", "kind_to_come", id="a kind of a service to come"),
        pytest.param("regulate", without(REGULATE, "steps"), "invalid_input", "steps", id="a missing field"),
        pytest.param("regulate", REGULATE | {"steps": None}, "invalid_input", "steps", id="null for a required field"),
        pytest.param("regulate", REGULATE | {"evn": "off"}, "invalid_input", "evn", id="an unknown field"),
        pytest.param("regulate", REGULATE | {"even": "on"}, "invalid_input", "even", id="an unknown word"),
        pytest.param("regulate", REGULATE | {"upper_cpus": "44"}, "invalid_input", "upper_cpus", id="text"),
        pytest.param("regulate", REGULATE | {"upper_cpus": True}, "invalid_input", "upper_cpus", id="a boolean for 1"),
        pytest.param("regulate", REGULATE | {"upper_cpus": 4.5}, "invalid_input", "upper_cpus", id="half a CPU"),
        pytest.param("regulate", REGULATE | {"lower_cpus": -1}, "invalid_input", "lower_cpus", id="a negative bound"),
        pytest.param(
            "regulate",
            REGULATE | {"steps": [{"t_s": 5, "required_cores": 1}, {"t_s": 4, "required_cores": 1}]},
            "invalid_input",
            "t_s",
            id="time that goes back",
        ),
        pytest.param(
            "regulate",
            REGULATE | {"steps": [{"t_s": 0, "required_cores": False}]},
            "invalid_input",
            "steps.0.required_cores",
            id="a boolean for cores",
        ),
        pytest.param(
            "regulate",
            json.dumps(REGULATE | {"steps": []}).replace("44", "1e999"),
            "invalid_input",
            "upper_cpus",
            id="infinity",
        ),
        pytest.param(
            "seed_pool_sizes", TUTORIAL_NODE | {"cpus": 0}, "invalid_input", "cpus", id="a machine without CPUs"
        ),
        pytest.param(
            "seed_pool_sizes",
            TUTORIAL_NODE | {"reserve_pool_cpus": 49},
            "invalid_input",
            "reserve_pool_cpus",
            id="all reserved",
        ),
        pytest.param("seed_pool_sizes", TUTORIAL_NODE | {"rule": "v9"}, "invalid_input", "rule", id="an unknown rule"),
        pytest.param("pod_qos", {"annotations": {"a": 1}}, "invalid_input", "annotations.a", id="a number as text"),
        pytest.param(
            "pod_qos",
            {"annotations": {}, "expanded_selectors": {"best_effort": {}}},
            "invalid_input",
            "expanded_selectors",
            id="an unknown level",
        ),
        pytest.param(
            "provision_canonical",
            {"containers": [{"qos": "shared_cores", "request_cores": 1, "cpuset_per_numa": {"0": "3-1"}}]},
            "invalid_input",
            "containers.0.cpuset_per_numa.0",
            id="a range that descends",
        ),
        pytest.param(
            "memory_guard", GUARD | {"numas": {"a": {}}}, "invalid_input", "numas.a", id="a NUMA node without number"
        ),
    ],
)
def test_a_malformed_question_is_refused_and_its_field_named(
    kind: str, inputs: bytes | dict[str, Any] | str, code: str, names: str
) -> None:
    found = one(kind, inputs)["error"]
    assert found["code"] == code
    assert names in found["message"]


def test_whole_numbers_are_taken_where_numbers_are_wanted_and_null_is_absent() -> None:
    asked = {"request_cores": 2, "enable_reclaim": True, "usage_cores": None, "load1": 3, "rule": None}
    assert one("estimate_container_cpu", asked) == {"estimate_cores": 3.0}
    regulated = REGULATE | {
        "max_ramp_down_step_cpus": None,
        "steps": [{"t_s": 0, "required_cores": 2, "effective_cpus": 20}],
    }
    assert one("regulate", regulated) == {"steps": [{"rounded_cpus": 6, "size_cpus": 18}]}


def test_a_rule_that_refuses_answers_in_the_outputs() -> None:
    found = one("memory_guard", GUARD)
    assert found["error"] == "missing_metric"
    assert found["memory_limit_bytes"] is None
    assert found["memory_high_bytes"] is None


def test_a_stream_is_answered_line_by_line_in_order() -> None:
    lines = [
        json.dumps({"id": 1, "kind": "seed_pool_sizes", "inputs": TUTORIAL_NODE}).encode(),
        b"\n",
        b'{"id": 2',
        b'{"id": "three", "kind": "nope", "inputs": {}}',
        b"7",
        b'{"kind": "seed_pool_sizes", "inputs": {}}',
        b'{"id": 4, "inputs": {}}',
        json.dumps(
            {"id": [5], "kind": "seed_pool_sizes", "inputs": TUTORIAL_NODE | {"cpus": "a"}, "outputs": {}}
        ).encode(),
        json.dumps({"id": 6, "kind": "seed_pool_sizes", "inputs": TUTORIAL_NODE, "outputs": {}}).encode(),
    ]
    found = [json.loads(line) for line in stream(KNOWN, lines)]
    assert [line["id"] for line in found] == [1, None, "three", None, None, 4, [5], 6]
    codes = [line.get("error", {}).get("code", "ok") for line in found]
    assert codes == ["ok", "invalid_json", "unknown_kind", "invalid_input", "invalid_input", "invalid_input",
                     "invalid_input", "ok"]  # fmt: skip
    assert "kind" in found[5]["error"]["message"]


class Number(Question):
    value: Annotated[int, Field(ge=0)]


class Half(Answer):
    half: float | None = None
    error: str | None = None
    explain: str | None = None


def halve(question: Number) -> Half:
    if question.value == 13:
        raise ZeroDivisionError("thirteen")
    if question.value % 2:
        raise Refused("odd", reason="odd")
    return Half(half=question.value / 2 if question.value < 1 << 2000 else math.inf)


def test_a_decision_that_fails_is_an_internal_error_and_the_next_line_is_answered() -> None:
    known = {"halve": DecisionKind("halve", "test", "Halve.", Number, Half, halve)}
    lines = [json.dumps({"id": n, "kind": "halve", "inputs": {"value": n}}) for n in (13, 7, 4)]
    failed, refused, done = (json.loads(line) for line in stream(known, lines))
    assert failed["error"] == {"code": "internal", "message": "halve: ZeroDivisionError: thirteen"}
    assert refused["outputs"] == {"half": None, "error": "odd", "message": "odd"}
    assert done["outputs"] == {"half": 2.0}


@pytest.mark.parametrize("value", [1 << 1500, 1 << 2000], ids=["an overflow", "an answer that is no finite number"])
def test_a_number_beyond_any_machine_is_refused_and_the_next_line_is_answered(value: int) -> None:
    known = {"halve": DecisionKind("halve", "test", "Halve.", Number, Half, halve)}
    lines = [json.dumps({"id": n, "kind": "halve", "inputs": {"value": n}}) for n in (value, 4)]
    refused, done = (json.loads(line) for line in stream(known, lines))
    assert refused["error"]["code"] == "invalid_input"
    assert "too large" in refused["error"]["message"]
    assert done["outputs"] == {"half": 2.0}


def test_the_same_question_gives_the_same_bytes_whenever_it_is_asked() -> None:
    annotations = {"katalyst.kubewharf.io/cpu_enhancement": '{"b": 1, "cpu_burst_percent": "x", "numa_ids": []}'}
    asked = json.dumps({"annotations": annotations})
    assert ask(KNOWN, "pod_qos", asked) == ask(kinds(), "pod_qos", asked)


def test_the_list_has_a_line_of_name_area_and_meaning_for_every_kind() -> None:
    rows = [line.split("\t") for line in listing(KNOWN)]
    assert [row[0] for row in rows] == sorted(KNOWN)
    assert all(len(row) == 3 and row[1] and row[2].endswith((".", "?")) for row in rows)


@pytest.mark.parametrize("kind", KNOWN)
def test_the_schemas_of_a_kind_are_valid_and_refuse_unknown_fields(kind: str) -> None:
    text, known = schema(KNOWN, kind)
    found = json.loads(text)
    assert known
    assert found["kind"] == kind
    for part in ("inputs", "outputs"):
        Draft202012Validator.check_schema(found[part])
        assert found[part]["additionalProperties"] is False


def run(*arguments: str, stdin: str | bytes = "") -> tuple[int, list[dict[str, Any]]]:
    result = CliRunner().invoke(build({"whatif": command}), ["whatif", *arguments], input=stdin)
    return result.exit_code, [json.loads(line) for line in result.stdout.splitlines() if line.startswith("{")]


@pytest.mark.parametrize(
    ("arguments", "stdin", "code"),
    [
        pytest.param(["seed_pool_sizes"], json.dumps(TUTORIAL_NODE), 0, id="a question"),
        pytest.param(["memory_guard"], json.dumps(GUARD), 0, id="a rule that refuses"),
        pytest.param(["seed_pool_sizes"], "{", 2, id="not JSON"),
        pytest.param(["nope"], "{}", 2, id="an unknown kind"),
        pytest.param(["--jsonl"], "{\n", 0, id="a stream with a bad line"),
        pytest.param(["--jsonl"], b'\xff\n{"id":1,"kind":"nope","inputs":{}}\n', 0, id="a stream with bad bytes"),
        pytest.param(["--schema", "regulate"], "", 0, id="schemas"),
        pytest.param(["--schema", "nope"], "", 2, id="schemas of an unknown kind"),
    ],
)
def test_the_exit_code_says_whether_the_question_could_be_asked(
    arguments: list[str], stdin: bytes | str, code: int
) -> None:
    found, answers = run(*arguments, stdin=stdin)
    assert found == code
    assert answers


@pytest.mark.parametrize("arguments", [[], ["regulate", "--list"], ["--jsonl", "--list"]], ids=str)
def test_a_call_asks_for_exactly_one_thing(arguments: list[str]) -> None:
    assert run(*arguments) == (2, [])


def test_the_command_lists_all_kinds() -> None:
    result = CliRunner().invoke(build({"whatif": command}), ["whatif", "--list"])
    assert result.exit_code == 0
    assert len(result.stdout.splitlines()) == len(KNOWN)
