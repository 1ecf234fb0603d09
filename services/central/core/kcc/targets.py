"""A config object ("target"), and whether it is valid next to the others
(docs/facts/katalyst-cluster.md#valid-configs).

A target applies to the nodes it names, to those its selector matches, or to all. Two targets of one sort must not claim
the same node. A refusal names field, value and bound.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, NoReturn

from services.central.core.kcc.canary import UpdateStrategy
from services.central.core.kcc.selector_overlap import overlap
from services.central.core.kcc.selectors import Selector, parse_selector
from services.central.core.strict import StrictModel
from shared.core.text.durations import duration_ns
from shared.errors import Refused

VALIDATE_FAILED = "ValidateFailed"
BY_NAME, BY_SELECTOR, FOR_ALL = range(3)
"""How a target finds its nodes; the lower goes first."""


class AllowedKeys(StrictModel):
    """The labels that selectors of one priority may ask for."""

    priority: int = 0
    keys: list[str]


def keys_by_priority(allowed: Iterable[AllowedKeys]) -> dict[int, list[str]]:
    """The allowed labels of each priority."""
    return {entry.priority: entry.keys for entry in allowed}


class KccTarget(StrictModel):
    """One config object. Its selector and duration are text: what cannot be read is refused by the rules here."""

    namespace: str = "default"
    name: str
    label_selector: str | None = None
    priority: int = 0
    node_names: list[str] | None = None
    last_duration: str | None = None
    paused: bool = False
    update_strategy: UpdateStrategy | None = None
    generation: int = 1
    spec_config: dict[str, Any] | None = None
    deleting: bool = False

    @property
    def key(self) -> str:
        """Return namespace and name, which identify it."""
        return f"{self.namespace}/{self.name}"

    @property
    def for_all(self) -> bool:
        """Whether it is for every node."""
        return not self.node_names and not self.label_selector

    @property
    def rank(self) -> tuple[int, int]:
        """Return its precedence among targets of a node, the lower first: names, then selectors, then all nodes."""
        level = BY_NAME if self.node_names else FOR_ALL if self.for_all else BY_SELECTOR
        return level, -self.priority

    @cached_property
    def names(self) -> frozenset[str]:
        """The nodes that it names."""
        return frozenset(self.node_names or ())

    @cached_property
    def selector(self) -> Selector:
        """Parse the selector of its nodes' labels.

        Raises:
            Refused: `selector`.
        """
        return parse_selector(self.label_selector or "")


def check_target(target: KccTarget, allowed: Mapping[int, Sequence[str]], others: Iterable[KccTarget]) -> None:
    """Check a target against the others, which may include it.

    Raises:
        Refused: `ValidateFailed`, and what to change.
    """
    # A target that is being deleted claims no node, because its successor may exist already.
    rest = sorted((o for o in others if o.key != target.key and not o.deleting), key=lambda o: o.key)
    if target.label_selector and target.node_names:
        _refuse("nodeLabelSelector and ephemeralSelector.nodeNames are both set, want one of them")
    if target.label_selector:
        _check_selector(target, allowed, rest)
    elif target.node_names:
        _check_names(target, rest)
    else:
        _check_global(target, rest)


def _check_selector(target: KccTarget, allowed: Mapping[int, Sequence[str]], rest: Sequence[KccTarget]) -> None:
    if not allowed:
        _refuse(f"nodeLabelSelector {target.label_selector!r}: this kind of config allows no label in its KCC")
    if target.last_duration is not None:
        _refuse(f"ephemeralSelector.lastDuration {target.last_duration!r}: only with nodeNames")
    try:
        selector = target.selector
    except Refused as refusal:
        _refuse(f"nodeLabelSelector: {refusal}")
    if target.priority not in allowed:
        _refuse(f"priority {target.priority}: want one of [{' '.join(map(str, sorted(allowed)))}]")
    keys = allowed[target.priority]
    if foreign := selector.keys - set(keys):
        _refuse(
            f"nodeLabelSelector asks for {_listed(foreign)}: with priority {target.priority} want only {_listed(keys)}"
        )
    if rivals := [other.key for other in rest if _overlaps(target, selector, other, keys)]:
        _refuse(f"labelSelector overlay with others: {_listed(rivals)}")


def _overlaps(target: KccTarget, selector: Selector, other: KccTarget, keys: Sequence[str]) -> bool:
    """A selector that cannot be read is refused itself and claims no node."""
    if not other.label_selector or other.priority != target.priority:
        return False
    try:
        return overlap(selector, other.selector, keys)
    except Refused:
        return False


def _check_names(target: KccTarget, rest: Sequence[KccTarget]) -> None:
    if target.last_duration is None:
        _refuse(
            "ephemeralSelector.nodeNames without lastDuration: want a duration such as 1h, after which it is deleted"
        )
    try:
        duration_ns(target.last_duration)
    except Refused as refusal:
        _refuse(f"ephemeralSelector.lastDuration: {refusal}")
    if rivals := [other.key for other in rest if target.names & other.names]:
        _refuse(f"nodeNames overlay with others: {_listed(rivals)}")


def _check_global(target: KccTarget, rest: Sequence[KccTarget]) -> None:
    if target.last_duration is not None:
        _refuse(f"ephemeralSelector.lastDuration {target.last_duration!r}: only with nodeNames")
    if rivals := [other.key for other in rest if other.for_all]:
        _refuse(f"global config {target.key} overlay with others: {_listed(rivals)}")


def _listed(names: Iterable[str]) -> str:
    return f"[{' '.join(sorted(names))}]"


def _refuse(why: str) -> NoReturn:
    raise Refused(why, reason=VALIDATE_FAILED)
