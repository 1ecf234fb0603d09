"""`own_mode` returns the mode of nodes without a config object, according to the installation. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shared.contracts.mode import NodeMode
from shared.core.node_mode import MODE_KEY, document_mode
from shared.core.text.yaml_text import read_yaml
from shared.errors import BadConfig, Refused
from sublet.migrate.plan.objects import part_of, rows_of, words_of

NODE_AGENT, NODE_SETTINGS, CENTRAL = "sublet-node", "sublet-node", "sublet-central"
"""The agent's DaemonSet, and the ConfigMaps of what nodes start with and of what central tells all of them."""
VARIABLE = "SUBLET_MODE"
MAX_BYTES = 1 << 20
BUILT_IN: NodeMode = "enforce"
"""Where nothing says a mode (docs/settings.md)."""


@dataclass(frozen=True, slots=True)
class Installed:
    """The objects that say it; None where one is not there."""

    central: Mapping[str, Any] | None = None
    node_settings: Mapping[str, Any] | None = None
    agent: Mapping[str, Any] | None = None


def own_mode(seen: Installed) -> NodeMode:
    """The configuration of all nodes goes before a node's settings, its environment before its file."""
    said: Sequence[Mapping[str, Any]] = [
        _document(seen.central, "config.yaml"),
        *({MODE_KEY: word} for word in _variables(seen.agent)),
        _document(seen.node_settings, "settings.yaml"),
    ]
    return next((mode for document in said if (mode := _mode(document)) is not None), BUILT_IN)


def _mode(document: Mapping[str, Any]) -> NodeMode | None:
    try:
        return document_mode(document, "mode")
    except BadConfig:  # the services refuse it as well, and go on without
        return None


def _document(config_map: Mapping[str, Any] | None, key: str) -> Mapping[str, Any]:
    """What one key of a ConfigMap says; nothing where it cannot be read."""
    try:
        return part_of(read_yaml(words_of(config_map, "data").get(key, ""), what=key, max_bytes=MAX_BYTES).value)
    except Refused:
        return {}


def _variables(agent: Mapping[str, Any] | None) -> list[str]:
    """What the agent's containers have in their environment."""
    containers = rows_of(part_of(agent, "spec", "template", "spec"), "containers")
    found = [one.get("value") for container in containers for one in rows_of(container, "env")
             if one.get("name") == VARIABLE]  # fmt: skip
    return [word for word in found if isinstance(word, str)]
