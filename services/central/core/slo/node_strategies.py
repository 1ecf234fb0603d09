"""What the ConfigMap says for each node, key by key, and the settings that follow.

Facts: docs/facts/koordinator-slo-config.md#what-holds-on-a-node.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from services.central.core.slo.config_map import ReadSloConfig
from services.central.core.slo.effective import effective_slo
from services.central.core.slo.host_applications import follow_applications
from services.central.core.slo.isolation import followed_disks
from services.central.core.slo.keys import SHAPES, SLO_KEYS, SloKey, Strategy
from services.central.core.slo.overlay import overlay
from services.central.core.slo.part import SloPart
from services.central.core.slo.quality import ClassQuality
from services.central.core.slo.settings import FOLLOWED_KEYS, Sections, settings_of_strategy

Said = Mapping[SloKey, Strategy]
"""What the ConfigMap says about a node by key, without built-in values; undeclared keys are absent."""
UNFOLLOWED_PARTS = ("blkioQOS", "networkQOS")
"""Parts of a class that only appear in NodeSLO objects, except for the disks of best-effort pods."""
_Matches = tuple[int | None, ...]


@dataclass(frozen=True, slots=True)
class NodeStrategies:
    """What the ConfigMap says about a node; the valid content of `unread` keys is unknown."""

    said: Said
    unread: frozenset[SloKey] = frozenset()
    settings: Mapping[str, Any] | None = None
    """The settings that follow from `said`, if no key is unread."""
    unfollowed: tuple[str, ...] = ()
    followed: Said = field(default_factory=dict)
    """The part of `said` that nodes follow, field by field."""


NODE_SLO_FIELDS: Mapping[SloKey, str] = {
    "resource-threshold-config": "resourceUsedThresholdWithBE",
    "resource-qos-config": "resourceQOSStrategy",
    "cpu-burst-config": "cpuBurstStrategy",
    "system-config": "systemStrategy",
    "host-application-config": "hostApplications",
}
"""The fields of a NodeSLO's spec, and the key of each."""

UNKNOWN = NodeStrategies({}, frozenset(SLO_KEYS))
"""Before the ConfigMap was seen."""


class SloStrategies:
    """One content of the ConfigMap, for every node. Nodes that the same entries take share one answer."""

    def __init__(self, read: ReadSloConfig) -> None:
        self._read = read
        self._found: dict[_Matches, NodeStrategies] = {}

    def of(self, labels: Mapping[str, str]) -> NodeStrategies:
        """Return the strategies of a node with these labels."""
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
        followed = {key: _followed_of(key, said[key]) for key in FOLLOWED_KEYS if key in said}
        return NodeStrategies(said, self._read.unread, settings, tuple(unfollowed), followed)


def _followed_of(key: SloKey, said: Strategy) -> Strategy:
    if key != "host-application-config":
        return _followed(SHAPES[key].model.model_validate(said))
    listed = said.get("applications")
    return {} if listed is None else {"applications": follow_applications(listed).said}


def _followed(part: SloPart) -> dict[str, Any]:
    """The fields that may have a setting. An entry holds no others: they could be more than the bucket takes."""
    found: dict[str, Any] = {}
    for name, field_info in type(part).model_fields.items():
        value, alias = getattr(part, name), field_info.alias or name
        if value is not None and alias not in UNFOLLOWED_PARTS:
            found[alias] = _followed(value) if isinstance(value, SloPart) else value
        if isinstance(value, ClassQuality) and alias == "beClass" and value.blkio_qos is not None:
            disks = followed_disks(value.blkio_qos.model_dump(by_alias=True, exclude_none=True))
            found[alias] |= {"blkioQOS": disks} if disks else {}
    return found


def settings_of_said(said: Said) -> Sections:
    """Return the settings for a node's strategies, section by section."""
    found: Sections = {}
    for key in FOLLOWED_KEYS:
        if key in said:
            found = overlay(found, settings_of_strategy(key, said[key]).settings)
    return found


def said_for_entry(node: NodeStrategies, there: Mapping[str, Any]) -> tuple[Said, Mapping[str, Any]]:
    """Return what a node's entry should hold of the followed keys, and the settings for it.

    For an unread key, as after a restart with a bad ConfigMap, the entry's own content is still valid.
    """
    if node.settings is not None:
        return node.followed, node.settings
    said: dict[SloKey, Strategy] = {}
    for key in FOLLOWED_KEYS:
        strategy = _good(key, there.get(key)) if key in node.unread else node.followed.get(key)
        if strategy is not None:
            said[key] = strategy
    return said, settings_of_said(said)


def node_slo_spec(node: NodeStrategies, there: Mapping[str, Any]) -> dict[str, Any]:
    """Return the spec of a node's NodeSLO, including built-in values; for an unread key, the current content."""
    spec: dict[str, Any] = {}
    for key, name in NODE_SLO_FIELDS.items():
        if key in node.unread and name in there:
            spec[name] = there[name]
            continue
        whole = overlay(SHAPES[key].built_in, node.said.get(key, {}))
        if key != "host-application-config":
            spec[name] = whole
        elif whole["applications"]:
            spec[name] = whole["applications"]
    return spec


def _good(key: SloKey, strategy: object) -> Strategy | None:
    """Return a strategy of an entry; None if it is not one."""
    if not isinstance(strategy, Mapping):
        return None
    try:
        SHAPES[key].model.model_validate(overlay(SHAPES[key].built_in, strategy))
    except (ValidationError, AttributeError, TypeError):
        return None
    return dict(strategy)
