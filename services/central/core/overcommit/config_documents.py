"""NodeOvercommitConfig objects, as claims to pools of nodes (docs/facts/katalyst-overcommit.md#which-config).

A config that cannot be followed claims no node, and its status says why: a mistake changes no node.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from services.central.core.overcommit.match import PoolClaim
from shared.contracts.kube.overcommit import RESOURCES, Resource, ratio_of
from shared.core.api_kind import ApiKind
from shared.core.text.document import items, mapping, text, texts
from shared.errors import Refused

OVERCOMMIT_CONFIGS = ApiKind(
    "overcommit.katalyst.kubewharf.io", "v1alpha1", "NodeOvercommitConfig", "nodeovercommitconfigs"
)
MOST_POOL = 63
"""Characters of a label's value."""


@dataclass(frozen=True, slots=True)
class OvercommitLimits:
    """How far nodes may be over-committed."""

    most: Mapping[Resource, float]
    by_label_alone: bool = False
    """Whether a node that never reported what it can bear gets the ratio of its config."""


@dataclass(frozen=True, slots=True)
class OvercommitConfig:
    """A config: the pool that it claims, the ratios that it sets, as written, and its current status."""

    claim: PoolClaim
    generation: int
    ratios: Mapping[Resource, str] = field(default_factory=dict)
    problem: str = ""
    """Why it cannot be read; "" where it can."""
    matched: tuple[str, ...] = ()
    """Nodes in its status now."""
    conditions: tuple[Mapping[str, Any], ...] = ()
    """Those in its status now."""

    @property
    def name(self) -> str:
        """Of the object."""
        return self.claim.name

    def refusal(self, limits: OvercommitLimits) -> str:
        """Why it is not followed; "" while it is."""
        faults = [fault for name, given in self.ratios.items() if (fault := _fault(name, given, limits))]
        return self.problem or next(iter(faults), "")


def overcommit_config_of(document: Mapping[str, Any]) -> OvercommitConfig:
    """Read an object; nothing in its spec or status raises.

    Raises:
        Refused: it has no name, which no API server sends.
    """
    meta = mapping(document.get("metadata"), "metadata")
    name, generation = text(meta.get("name"), "metadata.name"), meta.get("generation")
    status = document.get("status")
    seen = status if isinstance(status, Mapping) else {}
    ratios, pool, problem = dict[Resource, str](), "", ""
    try:
        pool, ratios = _spec(document)
    except Refused as refusal:
        problem = str(refusal)
    return OvercommitConfig(
        claim=PoolClaim(name, pool, _created_s(meta.get("creationTimestamp"))),
        generation=generation if isinstance(generation, int) else 0,
        ratios=ratios,
        problem=problem,
        matched=tuple(one for one in _list(seen.get("matchedNodeList")) if isinstance(one, str)),
        conditions=tuple(one for one in _list(seen.get("conditions")) if isinstance(one, Mapping)),
    )


def _spec(document: Mapping[str, Any]) -> tuple[str, dict[Resource, str]]:
    spec = mapping(document.get("spec"), "spec")
    pool = text(spec.get("nodeOvercommitSelectorVal") or "", "spec.nodeOvercommitSelectorVal")
    if not pool or len(pool) > MOST_POOL:
        raise Refused(
            "spec.nodeOvercommitSelectorVal: want the value of the label katalyst.kubewharf.io/overcommit_node_pool, 1 "
            f"to {MOST_POOL} characters; it matches no node",
            reason="selector",
        )
    given = texts(spec.get("resourceOvercommitRatio"), "spec.resourceOvercommitRatio")
    others = sorted(given.keys() - set(RESOURCES))
    if others:
        raise Refused(
            f"spec.resourceOvercommitRatio.{others[0][:64]}: cpu and memory alone can be over-committed; leave it out",
            reason="resource",
        )
    return pool, {name: given[name] for name in RESOURCES if name in given}


def _fault(name: Resource, given: str, limits: OvercommitLimits) -> str:
    """Return what is wrong with a ratio; "" if nothing is."""
    where, ratio, most = f"spec.resourceOvercommitRatio.{name}: {given[:32]!r}", ratio_of(given), limits.most[name]
    if ratio is None:
        return f'{where} is no number; write one such as "1.5"'
    if ratio < 1:
        return f"{where} is below 1: nodes are not made smaller; write 1 or more"
    if ratio > most:
        setting = f"central.kubernetes.overcommit.most_{name}_ratio"
        return f"{where} is above {most:g}, the most that is allowed here; write less, or set {setting}"
    return ""


def _created_s(given: object) -> float:
    """Return seconds since 1970; an unreadable time counts as the oldest, and never wins."""
    try:
        return datetime.fromisoformat(str(given)).timestamp()
    except ValueError:
        return 0.0


def _list(given: object) -> list[Any]:
    return items(given, "status") if isinstance(given, list) else []
