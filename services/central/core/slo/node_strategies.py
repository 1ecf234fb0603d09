"""What the ConfigMap says for each node, key by key, and what follows from it there.

Facts: docs/facts/koordinator-slo-config.md#what-holds-on-a-node.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from services.central.core.slo.config_map import ReadSloConfig
from services.central.core.slo.effective import effective_slo
from services.central.core.slo.keys import SHAPES, SLO_KEYS, SloKey, Strategy
from services.central.core.slo.overlay import overlay
from services.central.core.slo.settings import FOLLOWED_KEYS, Sections, settings_of_strategy

Said = Mapping[SloKey, Strategy]
"""By key what the ConfigMap says of a node, without what is built in; a key of which it says nothing is absent."""
_Matches = tuple[int | None, ...]


@dataclass(frozen=True, slots=True)
class NodeStrategies:
    """What the ConfigMap says of a node; of `unread` keys nobody here knows what is good."""

    said: Said
    unread: frozenset[SloKey] = frozenset()
    settings: Mapping[str, Any] | None = None
    """What follows from `said`, where no key is unread."""
    unfollowed: tuple[str, ...] = ()


NODE_SLO_FIELDS: Mapping[SloKey, str] = {
    "resource-threshold-config": "resourceUsedThresholdWithBE",
    "resource-qos-config": "resourceQOSStrategy",
    "cpu-burst-config": "cpuBurstStrategy",
    "system-config": "systemStrategy",
    "host-application-config": "hostApplications",
}
"""The fields of a NodeSLO's spec, and the key behind each."""

UNKNOWN = NodeStrategies({}, frozenset(SLO_KEYS))
"""Before the ConfigMap was seen."""


class SloStrategies:
    """One content of the ConfigMap, for every node. Nodes that the same entries take share one answer."""

    def __init__(self, read: ReadSloConfig) -> None:
        self._read = read
        self._found: dict[_Matches, NodeStrategies] = {}

    def of(self, labels: Mapping[str, str]) -> NodeStrategies:
        """What holds on a node with these labels."""
        matches = self._matches(labels)
        found = self._found.get(matches)
        if found is None:
            found = self._found[matches] = self._of(labels)
        return found

    @property
    def unfollowed(self) -> list[str]:
        """Values that no setting takes, of all nodes that were asked about."""
        return sorted({line for found in self._found.values() for line in found.unfollowed})

    def _matches(self, labels: Mapping[str, str]) -> _Matches:
        found: list[int | None] = []
        for config in self._read.config.values():
            rows = enumerate(config.nodes)
            found.append(next((index for index, node in rows if node.selector.matches(labels)), None))
        return tuple(found)

    def _of(self, labels: Mapping[str, str]) -> NodeStrategies:
        effective = effective_slo(self._read.config, labels)
        said = {key: effective[key].said for key in self._read.config}
        settings = settings_of_said(said) if not self._read.unread else None
        unfollowed = [line for key, strategy in said.items() for line in settings_of_strategy(key, strategy).unfollowed]
        return NodeStrategies(said, self._read.unread, settings, tuple(unfollowed))


def settings_of_said(said: Said) -> Sections:
    """The settings behind what is said of a node, section by section."""
    found: Sections = {}
    for key in FOLLOWED_KEYS:
        if key in said:
            found = overlay(found, settings_of_strategy(key, said[key]).settings)
    return found


def said_for_entry(node: NodeStrategies, there: Mapping[str, Any]) -> tuple[Said, Mapping[str, Any]]:
    """What a node's entry should hold of the keys that are followed, and the settings behind it.

    Of a key that nobody here can read, as after a restart over a bad ConfigMap, the entry's own content is good still.
    """
    if node.settings is not None:
        return {key: node.said[key] for key in FOLLOWED_KEYS if key in node.said}, node.settings
    said: dict[SloKey, Strategy] = {}
    for key in FOLLOWED_KEYS:
        strategy = _good(key, there.get(key)) if key in node.unread else node.said.get(key)
        if strategy is not None:
            said[key] = strategy
    return said, settings_of_said(said)


def node_slo_spec(node: NodeStrategies, there: Mapping[str, Any]) -> dict[str, Any]:
    """The spec of a node's NodeSLO, built-in values and all; of a key that nobody here can read, what is there."""
    spec: dict[str, Any] = {}
    for key, field in NODE_SLO_FIELDS.items():
        if key in node.unread and field in there:
            spec[field] = there[field]
            continue
        whole = overlay(SHAPES[key].built_in, node.said.get(key, {}))
        if key != "host-application-config":
            spec[field] = whole
        elif whole["applications"]:
            spec[field] = whole["applications"]
    return spec


def _good(key: SloKey, strategy: object) -> Strategy | None:
    """A strategy of an entry; None where it is none."""
    if not isinstance(strategy, Mapping):
        return None
    try:
        SHAPES[key].model.model_validate(overlay(SHAPES[key].built_in, strategy))
    except (ValidationError, AttributeError, TypeError):
        return None
    return dict(strategy)
