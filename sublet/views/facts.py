"""What the services' answers say about the node, read back into the contracts' types."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import ValidationError

from shared.contracts.advice import PoolAdvice
from shared.contracts.allocation import Allocation
from shared.contracts.envelope import Part
from shared.contracts.readiness import ServiceHealth
from shared.contracts.sample import NodeSample

P = TypeVar("P", bound=Part)

Answers = Mapping[str, Mapping[str, Any] | None]


@dataclass(frozen=True)
class NodeFacts:
    """One node, as its services tell it. What nobody told is None."""

    node: str
    answers: Answers
    sample: NodeSample | None
    allocation: Allocation | None
    advice: PoolAdvice | None
    """The advice that the allocation rests on, as qrm holds it; else the advisor's newest."""
    healths: tuple[ServiceHealth, ...]
    """Of the node's services as the reporter folded them, and of central as it sees itself."""

    @property
    def silent(self) -> tuple[str, ...]:
        """The services that did not answer."""
        return tuple(name for name, answer in self.answers.items() if answer is None)

    def told(self, service: str, key: str, default: Any) -> Any:
        """One entry of a service's answer; the default where it is missing."""
        value = (self.answers.get(service) or {}).get(key)
        return default if value is None else value


def read(node: str, answers: Answers) -> NodeFacts:
    """Read the answers; a part that cannot be read counts as not told."""

    def one(service: str, key: str, model: type[P]) -> P | None:
        return _read(model, (answers.get(service) or {}).get(key))

    rows = [*((answers.get("reporter") or {}).get("services") or ()), (answers.get("central") or {}).get("health")]
    return NodeFacts(
        node=node,
        answers=answers,
        sample=one("metrics", "sample", NodeSample),
        allocation=one("qrm", "allocation", Allocation),
        advice=one("qrm", "advice", PoolAdvice) or one("advisor", "advice", PoolAdvice),
        healths=tuple(health for row in rows if (health := _read(ServiceHealth, row)) is not None),
    )


def _read(model: type[P], value: Any) -> P | None:
    try:
        return None if value is None else model.model_validate(value)
    except ValidationError:
        return None
