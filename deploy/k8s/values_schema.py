"""The sections `settings` and `config` of the chart's values.schema.json, from the models of the services.

`make schemas` and `render.py` write them: `helm install` and `helm template` then refuse what a service would refuse.
What only a service knows (the names of policies from other wheels, how two settings belong together) is left to it.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from shared.contracts.services import SERVICES
from sublet.settings_page.schema import document_schema

SCHEMA = Path(__file__).parent / "chart/values.schema.json"
COMMON = ("qos_fallback", "scheduling", "lock_memory", "heartbeat_s", "connect_timeout_s", "otlp_endpoint")
"""Settings of all services that an installation may choose; the chart itself says the others."""
LEFT_OUT = ("title", "description", "default", "writeOnly", "format")
"""Words for people are in docs/settings.md."""


def with_models(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of the values with the sections as the models of now have them."""
    config, settings = document_schema("configuration"), document_schema("settings")
    sections = {name: config["properties"][name] for name in SERVICES}
    common = {name: settings["properties"][name] for name in COMMON}
    properties = schema["properties"] | {
        "settings": _closed({**sections, **common}),
        "config": _closed({**sections, "mode": {"$ref": "#/properties/mode"}}),
    }
    return {**schema, "properties": properties, "$defs": _bare(config["$defs"] | settings["$defs"])}


def _closed(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": False, "properties": _bare(properties)}


def _bare(node: Any, *, names: bool = True) -> Any:
    """Without words for people, and without keys that must be given: the chart and the environment give theirs.

    `names`: the keys of this mapping are names, and no words of JSON Schema.
    """
    if isinstance(node, list):
        return [_bare(one, names=False) for one in node]
    if not isinstance(node, Mapping):
        return node
    kept = {key: value for key, value in node.items() if names or key not in (*LEFT_OUT, "required")}
    return {key: _bare(value, names=not names and key == "properties") for key, value in kept.items()}


def text() -> str:
    """What the file should hold."""
    return json.dumps(with_models(json.loads(SCHEMA.read_text())), indent=1) + "\n"


if __name__ == "__main__":
    SCHEMA.write_text(text())
