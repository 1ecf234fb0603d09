"""Decides what the API server stores when a node's status is written (docs/facts/katalyst-overcommit.md#webhook).

Only kubelet's figures are a node's own: figures from another writer may be amplified already, and would be amplified
twice.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from services.central.core.overcommit.amounts import Amounts
from services.central.core.overcommit.ratio import effective_ratio
from shared.contracts.kube.overcommit import Resource

ByResource = Mapping[Resource, Amounts]


@dataclass(frozen=True, slots=True)
class NodeOvercommit:
    """A Node's annotations about its over-commitment; a missing one is unknown."""

    ratio: Mapping[Resource, str] = field(default_factory=dict)
    """As set by a config."""
    realtime: Mapping[Resource, str] = field(default_factory=dict)
    """As the node can bear it."""
    overcommitted: ByResource = field(default_factory=dict)
    originals: ByResource = field(default_factory=dict)
    """Kubelet's, as they were last seen."""


@dataclass(frozen=True, slots=True)
class Admitted:
    """What must be stored; no `originals`: the status stays as it was sent."""

    status: ByResource
    originals: ByResource | None = None


def admitted(status: ByResource, said: NodeOvercommit, *, by_kubelet: bool) -> Admitted:
    """The figures that are advertised in place of those in a status that is written."""
    originals = status if by_kubelet else said.originals
    if not originals:
        return Admitted(status)
    return Admitted(
        {**status, **{name: _advertised(name, amounts, said) for name, amounts in originals.items()}}, originals
    )


def _advertised(name: Resource, original: Amounts, said: NodeOvercommit) -> Amounts:
    given = said.ratio.get(name)
    if given is None:
        return original
    known = said.overcommitted.get(name)
    return known or original.times(effective_ratio(given, said.realtime.get(name)).value)
