"""The effective configuration of one node, value by value, with the source of each.

Facts: docs/facts/koordinator-slo-config.md#what-holds-on-a-node.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from services.central.core.slo.config_map import KeyConfig, NodeStrategy, SloConfig
from services.central.core.slo.keys import SHAPES, SloKey, Strategy
from services.central.core.slo.overlay import leaves, overlay

BUILT_IN, CLUSTER_WIDE = "built-in", "cluster"


@dataclass(frozen=True, slots=True)
class EffectiveStrategy:
    """The effective value of one key on a node; `sources` say of each value whether it is built in, the cluster's,
    or a selector's."""

    strategy: Strategy
    sources: Mapping[str, str]
    said: Strategy
    """The same without what is built in."""

    def rows(self) -> list[tuple[str, Any, str]]:
        """Path, value and source of each value, ascending by path."""
        return sorted((path, value, self.sources[path]) for path, value in leaves(self.strategy))


def effective_slo(config: SloConfig, node_labels: Mapping[str, str]) -> dict[SloKey, EffectiveStrategy]:
    """Every key as it holds on a node with these labels: built-in values, the cluster's over them, then the first
    strategy whose selector takes the node."""
    return {key: _effective(shape.built_in, config.get(key, KeyConfig()), node_labels) for key, shape in SHAPES.items()}


def _effective(built_in: Strategy, config: KeyConfig, node_labels: Mapping[str, str]) -> EffectiveStrategy:
    layers = [(CLUSTER_WIDE, config.cluster)]
    own = first_match(config.nodes, node_labels)
    if own is not None:
        layers.append((own.name, own.strategy))
    said: dict[str, Any] = {}
    sources = dict.fromkeys((path for path, _ in leaves(built_in)), BUILT_IN)
    for source, strategy in layers:
        said = overlay(said, strategy)
        sources |= {path: source for path, _ in leaves(strategy)}
    return EffectiveStrategy(overlay(built_in, said), sources, said)


def first_match(nodes: tuple[NodeStrategy, ...], node_labels: Mapping[str, str]) -> NodeStrategy | None:
    """The first strategy for a node with these labels; None where the cluster's holds."""
    return next((node for node in nodes if node.selector.matches(node_labels)), None)
