"""Every message with a value in every field of each of its parts, also in those that are mostly left out."""

import json
from typing import Any

from example_messages import EXAMPLES

from shared.contracts.bus import schemas

NUMBER = 1
Schema = dict[str, Any]


def filled_messages() -> dict[str, Any]:
    """The bodies by the names of the messages: the full examples, and a value by its type where they leave one out."""
    return {
        name: _filled(json.loads(EXAMPLES[name].encode()), schema, schema.get("$defs", {}))
        for name, schema in sorted(schemas.json_schemas().items())
    }


def _filled(body: Any, schema: Schema, defs: dict[str, Schema]) -> Any:
    schema = _part(schema, defs)
    if isinstance(body, dict) and "properties" in schema:
        missing = {name: _value(of, defs) for name, of in schema["properties"].items() if name not in body}
        whole = body | missing
        return {name: _filled(value, schema["properties"].get(name, {}), defs) for name, value in whole.items()}
    if isinstance(body, list):
        return [_filled(one, schema.get("items", {}), defs) for one in body]
    return body


def _part(schema: Schema, defs: dict[str, Schema]) -> Schema:
    """The schema itself, behind a reference and without "or null"."""
    for one in schema.get("anyOf", ()):
        if one.get("type") != "null":
            return _part(one, defs)
    return defs[schema["$ref"].rsplit("/", 1)[-1]] if "$ref" in schema else schema


def _value(schema: Schema, defs: dict[str, Schema]) -> Any:
    if schema.get("default") not in (None, [], {}):
        return schema["default"]
    part = _part(schema, defs)
    if "enum" in part or "const" in part:
        return part.get("const", part.get("enum", [None])[0])
    match part.get("type"):
        case "array":
            return [_value(part["items"], defs)] if isinstance(part.get("items"), dict) else []
        case "object" if "properties" in part:
            return _filled({}, part, defs)
        case "object":
            return {}
        case "integer" | "number":
            return NUMBER
        case "boolean":
            return True
    return _text(part)


def _text(part: Schema) -> str:
    """A text that the pattern of the field lets pass."""
    return "Job/nightly" if "/" in part.get("pattern", "") else "0"
