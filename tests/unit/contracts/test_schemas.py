"""The committed documents say what the models say, and nothing released ever changes its meaning."""

import copy
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from example_messages import EXAMPLES
from jsonschema import Draft202012Validator

from shared.contracts.bus import schemas
from shared.contracts.bus.subjects import EVENTS_STREAM, INTENTS_STREAM

DOCS = Path(__file__).parents[3] / "docs/schemas"
BASELINE = DOCS / "v1"
RELEASED = [json.loads(line) for line in (Path(__file__).parent / "v1_messages.jsonl").read_text().splitlines()]
IGNORED = {"title", "description", "$schema"}

names = pytest.mark.parametrize("name", sorted(schemas.messages()))


def load(path: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(path.read_text())
    return document


def incompatibilities(old: dict[str, Any], new: dict[str, Any], where: str = "") -> list[str]:
    """What a reader or writer of the old schema could trip over in the new one."""
    found = [f"{where}: {name} is gone" for name in old.get("properties", {}) if name not in new.get("properties", {})]
    if set(old.get("required", [])) != set(new.get("required", [])):
        found.append(f"{where}: required was {old.get('required', [])}, is {new.get('required', [])}")
    for name, field in old.get("properties", {}).items():
        if name in new.get("properties", {}) and _plain(field) != _plain(new["properties"][name]):
            found.append(f"{where}: {name} was {_plain(field)}, is {_plain(new['properties'][name])}")
    for name, part in old.get("$defs", {}).items():
        found += incompatibilities(part, new.get("$defs", {}).get(name, {}), f"{where}/{name}")
    return found


def _plain(field: Any) -> Any:
    if isinstance(field, dict):
        return {key: _plain(value) for key, value in field.items() if key not in IGNORED}
    return [_plain(item) for item in field] if isinstance(field, list) else field


def test_the_committed_documents_are_what_the_models_generate(tmp_path: Path) -> None:
    """After a change of a model: make schemas."""
    for written in schemas.write(tmp_path):
        assert load(DOCS / written.name) == load(written), f"{written.name} is out of date: run make schemas"


def test_every_released_message_still_exists() -> None:
    assert {path.stem for path in BASELINE.glob("*.json")} <= set(schemas.messages())


@names
def test_a_schema_only_gains_optional_fields(name: str) -> None:
    assert incompatibilities(load(BASELINE / f"{name}.json"), schemas.json_schemas()[name], name) == []


def _remove(schema: dict[str, Any]) -> None:
    del schema["properties"]["grace_s"]


def _retype(schema: dict[str, Any]) -> None:
    schema["properties"]["grace_s"]["type"] = "integer"


def _tighten(schema: dict[str, Any]) -> None:
    schema["properties"]["grace_s"]["maximum"] = 60


def _redefault(schema: dict[str, Any]) -> None:
    schema["properties"]["grace_s"]["default"] = 0


def _demand(schema: dict[str, Any]) -> None:
    schema["properties"]["reason"] = {"type": "string"}
    schema["required"].append("reason")


def _excuse(schema: dict[str, Any]) -> None:
    schema["required"].remove("pod_uid")


def _nested(schema: dict[str, Any]) -> None:
    del schema["$defs"]["Reason"]["properties"]["numbers"]


def _grow_enum(schema: dict[str, Any]) -> None:
    schema["properties"]["mode"]["enum"].append("sometimes")


@pytest.mark.parametrize(
    "change", [_remove, _retype, _tighten, _redefault, _demand, _excuse, _nested, _grow_enum], ids=lambda c: c.__name__
)
def test_the_compatibility_check_sees_a_breaking_change(change: Callable[[dict[str, Any]], None]) -> None:
    old = schemas.json_schemas()["EvictionIntent"]
    new = copy.deepcopy(old)
    change(new)
    assert len(incompatibilities(old, new)) == 1


def test_the_compatibility_check_lets_an_optional_field_and_other_words_pass() -> None:
    old = schemas.json_schemas()["EvictionIntent"]
    new = copy.deepcopy(old)
    new["properties"]["extra"] = {"type": "string", "default": ""}
    new["description"] = new["properties"]["grace_s"]["title"] = "other words"
    assert incompatibilities(old, new) == []


@names
def test_a_schema_is_valid_and_describes_what_is_sent(name: str) -> None:
    schema = schemas.json_schemas()[name]
    Draft202012Validator.check_schema(schema)
    Draft202012Validator(schema).validate(json.loads(EXAMPLES[name].encode()))


@names
def test_the_first_release_can_read_what_is_sent_today(name: str) -> None:
    Draft202012Validator(load(BASELINE / f"{name}.json")).validate(json.loads(EXAMPLES[name].encode()))


@names
def test_an_example_has_a_value_for_every_field(name: str) -> None:
    assert [f for f in type(EXAMPLES[name]).model_fields if f not in EXAMPLES[name].model_fields_set] in ([], ["v"])


@pytest.mark.parametrize("released", RELEASED, ids=lambda r: r["message"])
def test_a_message_of_the_first_release_is_read_field_by_field(released: dict[str, Any]) -> None:
    model = schemas.messages()[released["message"]]
    message = model.decode(json.dumps(released["body"]).encode())
    assert without_newer_fields(json.loads(message.encode()), released["body"]) == released["body"]


def without_newer_fields(now: Any, then: Any) -> Any:
    """Today's document without the fields that its first release did not have."""
    if isinstance(now, dict) and isinstance(then, dict):
        return {key: without_newer_fields(value, then[key]) for key, value in now.items() if key in then}
    if isinstance(now, list) and isinstance(then, list) and len(now) == len(then):
        return [without_newer_fields(a, b) for a, b in zip(now, then, strict=True)]
    return now


@pytest.mark.parametrize("released", RELEASED, ids=lambda r: r["message"])
def test_a_field_of_a_later_release_is_ignored(released: dict[str, Any]) -> None:
    model = schemas.messages()[released["message"]]
    later = {**released["body"], "a_later_field": {"x": [1]}}
    read = json.loads(model.decode(json.dumps(later).encode()).encode())
    assert "a_later_field" not in read
    assert without_newer_fields(read, released["body"]) == released["body"]


def test_there_is_a_released_example_of_every_message() -> None:
    assert {r["message"] for r in RELEASED} == set(schemas.messages())


def test_the_asyncapi_document_describes_each_message_once() -> None:
    document = load(DOCS / "asyncapi.json")
    assert document["asyncapi"] == "3.0.0"
    assert {"title", "version"} <= set(document["info"])
    assert set(document["channels"]) == set(document["components"]["messages"]) == set(schemas.messages())


def test_every_reference_of_the_asyncapi_document_leads_somewhere() -> None:
    document = load(DOCS / "asyncapi.json")
    references = list(_references(document))
    assert len(references) == 3 * len(schemas.messages())
    for reference in references:
        if reference.startswith("#/"):
            here: Any = document
            for part in reference.removeprefix("#/").split("/"):
                here = here[part]
        else:
            assert (DOCS / reference).is_file()


def _references(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if "$ref" in node:
            yield node["$ref"]
        for value in node.values():
            yield from _references(value)


@names
def test_a_channel_names_its_subject_and_the_parameters_in_it(name: str) -> None:
    document = load(DOCS / "asyncapi.json")
    channel = document["channels"][name]
    tokens = [part.strip("{}") for part in channel["address"].split(".") if part.startswith("{")]
    assert channel["address"].split(".")[0] == "sublet"
    assert channel["address"].split(".")[2] == "v1"
    assert sorted(channel["parameters"]) == sorted(tokens)
    operation = document["operations"][f"send{name}"]
    assert operation == {"action": "send", "channel": {"$ref": f"#/channels/{name}"}}


@pytest.mark.parametrize(("name", "stream"), [("EvictionIntent", INTENTS_STREAM), ("EvictionEvent", EVENTS_STREAM)])
def test_a_durable_channel_names_its_stream(name: str, stream: str) -> None:
    assert stream in load(DOCS / "asyncapi.json")["channels"][name]["description"]
