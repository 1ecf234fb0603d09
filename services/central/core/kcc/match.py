"""The choice of the config object that a node gets (docs/facts/katalyst-cluster.md#which-config-a-node-gets).

Targets that name the node go before those whose selector takes it, and these before those for all; on that level the
highest priority wins.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from services.central.core.kcc.targets import KccTarget
from shared.errors import Refused

NONE_MATCH = "none_match"
SEVERAL_MATCH = "several_match"


@dataclass(frozen=True, slots=True)
class Match:
    """Targets on the highest level that matches, by name, and those of them with the highest priority."""

    matched: tuple[KccTarget, ...]
    highest: tuple[KccTarget, ...]

    def selected(self) -> KccTarget:
        """The one that the node gets.

        Raises:
            Refused: `none_match`, or `several_match` when two have the highest priority.
        """
        if not self.highest:
            raise Refused("no config is for this node", reason=NONE_MATCH)
        if len(self.highest) > 1:
            names = " ".join(target.key for target in self.highest)
            raise Refused(f"[{names}] have the same priority for this node", reason=SEVERAL_MATCH)
        return self.highest[0]


def match(node: str, labels: Mapping[str, str], targets: Iterable[KccTarget]) -> Match:
    """The targets for a node; one that is being deleted, or whose selector cannot be read, is for none."""
    fitting = [target for target in targets if not target.deleting and _fits(target, node, labels)]
    best = min((target.rank for target in fitting), default=(0, 0))
    matched = sorted((t for t in fitting if t.rank[0] == best[0]), key=lambda t: (t.name, t.namespace))
    return Match(tuple(matched), tuple(target for target in matched if target.rank == best))


def _fits(target: KccTarget, node: str, labels: Mapping[str, str]) -> bool:
    if target.node_names:
        return node in target.names
    try:
        return target.selector.matches(labels)
    except Refused:
        return False
