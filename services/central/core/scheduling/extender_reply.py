"""Requests and answers of a scheduler extender on the wire (docs/facts/scheduling.md#extender-protocol)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

BAD_REQUEST = "bad_request"
_SCORES_A_POINT = 10
_MOST_POINTS = 10


@dataclass(frozen=True, slots=True)
class NodeStanding:
    """Whether a node takes the pod; `unresolvable`: not even where other pods went."""

    fits: bool
    reason: str = ""
    unresolvable: bool = False


@dataclass(frozen=True, slots=True)
class ExtenderRequest:
    """A pod and the nodes that are asked about, in order: their names, or whole objects where `objects` is not None."""

    pod: Mapping[str, Any]
    names: tuple[str, ...]
    objects: tuple[Any, ...] | None = None

    @classmethod
    def read(cls, body: object) -> Self | None:
        """The request in a body, its keys in any case; None where pod or nodes are missing or of other kinds."""
        pod, names, nodes = (value_of(body, key) for key in ("Pod", "NodeNames", "Nodes"))
        if not isinstance(pod, dict):
            return None
        if isinstance(names, list) and all(isinstance(name, str) for name in names):
            return cls(pod, tuple(names))
        rows = value_of(nodes, "items")
        if names is not None or not isinstance(nodes, dict) or not isinstance(rows, list | None):
            return None
        objects = tuple(rows or ())
        return cls(pod, tuple(_name_of(row) for row in objects), objects)

    def nodes(self) -> Iterator[tuple[str, Any]]:
        """Each node's name, and what the reply calls it by."""
        return zip(self.names, self.names if self.objects is None else self.objects, strict=True)


def filter_reply(request: ExtenderRequest | None, verdicts: Mapping[str, NodeStanding]) -> dict[str, Any]:
    """Which nodes stay, in the form in which they were asked about; one without verdict stays.

    An extender that refused what it does not know would stop the whole cluster as its data goes away.
    """
    if request is None:
        refused = dict.fromkeys(("Nodes", "NodeNames", "FailedNodes", "FailedAndUnresolvableNodes"))
        return refused | {"Error": BAD_REQUEST}
    stay: list[Any] = []
    failed: dict[str, str] = {}
    unresolvable: dict[str, str] = {}
    for name, shown in request.nodes():
        verdict = verdicts.get(name)
        if verdict is None or verdict.fits:
            stay.append(shown)
        else:
            (unresolvable if verdict.unresolvable else failed)[name] = verdict.reason
    return {
        "Nodes": None if request.objects is None else {"items": stay},
        "NodeNames": stay if request.objects is None else None,
        "FailedNodes": failed,
        "FailedAndUnresolvableNodes": unresolvable,
        "Error": "",
    }


def prioritize_reply(request: ExtenderRequest | None, scores: Mapping[str, int]) -> list[dict[str, Any]]:
    """The points of each node, 0 to 10, from scores of 0 to 100; a node without score has none."""
    return [{"Host": name, "Score": points(scores.get(name, 0))} for name in (request.names if request else ())]


def points(score: int) -> int:
    """A score as the protocol counts it."""
    return max(0, min(_MOST_POINTS, score // _SCORES_A_POINT))


def value_of(holder: object, key: str) -> Any:
    """Return the value of a key, exactly spelled or in another case, because Go's reader accepts either."""
    if not isinstance(holder, dict):
        return None
    if key in holder:
        return holder[key]
    return next(
        (value for name, value in holder.items() if isinstance(name, str) and name.lower() == key.lower()), None
    )


def _name_of(node: object) -> str:
    """Return the name, or "" if there is none: it has no verdict either, so it stays."""
    name = value_of(value_of(node, "metadata"), "name")
    return name if isinstance(name, str) else ""
