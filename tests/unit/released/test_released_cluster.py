"""Messages, configuration, kinds and values of an earlier version are taken by today's, and the other way round."""

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator
from released_folders import RELEASED
from state_of_a_cluster import CHART, CONFIGURATION, KILL, usage

from services.central.core.config import read_config
from services.central.core.recommendation.usage.checkpoint import restored
from shared.contracts.bus import schemas
from shared.contracts.services import SERVICES

VERSIONS = sorted(path for path in RELEASED.iterdir() if path.is_dir())
each_version = pytest.mark.parametrize("folder", VERSIONS, ids=lambda folder: folder.name)
Document = dict[str, Any]
IGNORED = frozenset({"description", "title", "default"})


def kinds(folder: Path) -> dict[str, Document]:
    """The CustomResourceDefinitions of a folder by their names."""
    documents = (yaml.safe_load(path.read_text()) for path in sorted(folder.glob("*.yaml")))
    return {one["metadata"]["name"]: one for one in documents if one["kind"] == "CustomResourceDefinition"}


def lost(old: Document, new: Document) -> list[str]:
    """What an object or a client of the old kind would miss in the new one."""
    name, then, now = old["metadata"]["name"], old["spec"], new["spec"]
    found = [f"{name}: scope"] if then["scope"] != now["scope"] else []
    versions = {one["name"]: one for one in now["versions"]}
    for one in then["versions"]:
        here = versions.get(one["name"])
        if here is None or (one["served"] and not here["served"]):
            found.append(f"{name}: version {one['name']} is not served")
        else:
            found += _narrowed(one["schema"]["openAPIV3Schema"], here["schema"]["openAPIV3Schema"], one["name"])
            found += [f"{one['name']}: no {part}" for part in one.get("subresources", {}) if
                      part not in here.get("subresources", {})]  # fmt: skip
    return found


def _narrowed(old: Document, new: Document, path: str) -> list[str]:
    """Where the new schema drops a field, asks for more or takes less than the old one."""
    bounds = (old.keys() | new.keys()) - IGNORED - {"properties", "items", "additionalProperties", "required"}
    if old.get("x-kubernetes-preserve-unknown-fields"):
        bounds -= {"x-kubernetes-preserve-unknown-fields", "type"}
    found = [f"{path}: {key} was {old.get(key)}, is {new.get(key)}" for key in sorted(bounds) if
             old.get(key) != new.get(key)]  # fmt: skip
    if more := set(new.get("required", ())) - set(old.get("required", ())):
        found.append(f"{path}: asks for {sorted(more)}")
    for name, field in old.get("properties", {}).items():
        if name in new.get("properties", {}):
            found += _narrowed(field, new["properties"][name], f"{path}.{name}")
        else:
            found.append(f"{path}.{name} is gone")
    for part in ("items", "additionalProperties"):
        if isinstance(old.get(part), dict):
            found += _narrowed(old[part], new.get(part) or {}, f"{path}.{part}")
    return found


@each_version
def test_every_message_is_read_field_by_field_and_a_later_field_is_ignored(folder: Path) -> None:
    for line in (folder / "messages.jsonl").read_text().splitlines():
        kept = json.loads(line)
        model = schemas.messages()[kept["message"]]
        read = model.decode(json.dumps(kept["body"] | {"a_later_field": {"x": [1]}}).encode())
        assert _common(json.loads(read.encode()), kept["body"]) == kept["body"], kept["message"]


def _common(now: Any, then: Any) -> Any:
    """Today's document without the fields that the earlier version did not have."""
    if isinstance(now, dict) and isinstance(then, dict):
        return {key: _common(value, then[key]) for key, value in now.items() if key in then}
    if isinstance(now, list) and isinstance(then, list) and len(now) == len(then):
        return [_common(one, other) for one, other in zip(now, then, strict=True)]
    return now


@each_version
def test_the_configuration_in_the_bucket_is_the_same_document(folder: Path) -> None:
    assert read_config((folder / "configuration.json").read_text(), known=SERVICES) == CONFIGURATION


@each_version
def test_what_was_learned_of_a_workload_goes_on(folder: Path) -> None:
    usages, kills = restored((folder / "usage-checkpoint.json").read_text(), KILL.namespace)
    assert kills == [KILL]
    assert usages["main"].cpu_samples == usage().cpu_samples
    assert usages["main"].hours == usage().hours
    then, now = usages["main"].cpu_cores(), usage().cpu_cores()
    assert then is not None
    assert now is not None
    assert then.target == pytest.approx(now.target)


@each_version
def test_values_of_an_earlier_chart_are_values_of_this_one(folder: Path) -> None:
    schema = json.loads((CHART / "values.schema.json").read_text())
    values = yaml.safe_load((folder / "values.yaml").read_text())
    assert [error.message for error in Draft202012Validator(schema).iter_errors(values)] == []


@each_version
def test_no_object_of_an_earlier_kind_is_refused_or_loses_a_field(folder: Path) -> None:
    today = kinds(CHART / "crds")
    for name, old in kinds(folder / "crds").items():
        assert name in today, f"{name} is gone, and with it every object of the kind"
        assert lost(old, today[name]) == []


def _fields(kind: Document) -> Document:
    found: Document = kind["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    return found


def _drop(kind: Document) -> None:
    del _fields(kind)["properties"]["config"]


def _demand(kind: Document) -> None:
    _fields(kind).setdefault("required", []).append("priority")


def _retype(kind: Document) -> None:
    _fields(kind)["properties"]["priority"]["type"] = "string"


def _tighten(kind: Document) -> None:
    _fields(kind)["properties"]["priority"]["maximum"] = 1


def _unserve(kind: Document) -> None:
    kind["spec"]["versions"][0]["served"] = False


def _rescope(kind: Document) -> None:
    kind["spec"]["scope"] = "Cluster" if kind["spec"]["scope"] == "Namespaced" else "Namespaced"


@pytest.mark.parametrize(
    "change", [_drop, _demand, _retype, _tighten, _unserve, _rescope], ids=lambda change: change.__name__
)
def test_a_kind_that_takes_less_is_seen(change: Callable[[Document], None]) -> None:
    old = kinds(CHART / "crds")["adminqosconfigurations.config.katalyst.kubewharf.io"]
    new = copy.deepcopy(old)
    assert lost(old, new) == []
    change(new)
    assert len(lost(old, new)) == 1


def test_a_kind_may_gain_a_field() -> None:
    old = kinds(CHART / "crds")["adminqosconfigurations.config.katalyst.kubewharf.io"]
    new = copy.deepcopy(old)
    _fields(new)["properties"]["later"] = {"type": "string", "description": "new"}
    assert lost(old, new) == []
