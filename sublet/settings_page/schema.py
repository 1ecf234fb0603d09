"""A JSON Schema of settings files and configurations, for editors: the models of all services, with their sentences."""

from typing import Any, Literal, get_args

from pydantic import BaseModel
from pydantic.json_schema import JsonSchemaMode, models_json_schema

from shared.contracts.mode import NodeMode
from shared.contracts.services import SERVICES
from shared.core.node_mode import MODE_KEY
from shared.errors import BadConfig
from shared.settings import CommonSettings
from sublet.settings_page.sections import Section, sections
from sublet.settings_page.sentences import sentence

DIALECT = "https://json-schema.org/draft/2020-12/schema"
Kind = Literal["configuration", "settings"]
_OPEN = {"policies", "plugins"}
"""Wheels add to these; what such a one takes is known where it is installed."""


def document_schema(kind: Kind) -> dict[str, Any]:
    """The schema of a configuration of all nodes, or of a settings file, which has the common keys as well."""
    found = list(sections())
    mode: JsonSchemaMode = "validation"
    models: list[tuple[type[BaseModel], JsonSchemaMode]] = [(one, mode) for one in {s.model: None for s in found}]
    refs, schema = models_json_schema(models)
    definitions = schema["$defs"]
    for model, _ in models:
        _describe(model, definitions[_name(refs[model, mode])])
    for section in found:
        if len(section.path) > 1 and section.path[1] in {*_OPEN, "fields"}:
            _open_up(section, definitions, refs[section.model, mode])
    properties = {name: refs[_root(found, name), mode] for name in SERVICES}
    common = definitions[_name(refs[CommonSettings, mode])]["properties"]
    properties |= common if kind == "settings" else {MODE_KEY: {"enum": list(get_args(NodeMode))}}
    return {
        "$schema": DIALECT,
        "title": f"Sublet: {kind}",
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
        "$defs": definitions,
    }


def _root(found: list[Section], name: str) -> type[BaseModel]:
    return next(section.model for section in found if section.path == (name,))


def _name(ref: dict[str, Any]) -> str:
    return str(ref["$ref"]).rpartition("/")[2]


def _describe(model: type[BaseModel], definition: dict[str, Any]) -> None:
    for key, of_key in definition.get("properties", {}).items():
        try:
            of_key["description"] = sentence(model, key)
        except BadConfig:  # the models below settings, of which another document speaks
            continue


def _open_up(section: Section, definitions: dict[str, Any], ref: dict[str, Any]) -> None:
    """Name one policy, plugin or field among the keys of the mapping that holds them all."""
    service, mapping, name = section.path[:3]
    if len(section.path) > 3:
        return
    holder = definitions[f"{service.capitalize()}Settings"]["properties"][mapping]
    holder.setdefault("properties", {})[name] = ref
    if mapping not in _OPEN:
        holder["additionalProperties"] = False
