"""Where a pod may run at all: its node selector, its required node affinity, and the taints that it tolerates."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from services.central.core.kcc.selectors import Operator, Selector, expression
from services.central.core.tide.marks import TideTaint
from shared.errors import Refused

KEEPS_AWAY = ("NoSchedule", "NoExecute")
_OPERATORS: Mapping[str, Operator] = {
    "In": "in", "NotIn": "notin", "Exists": "exists", "DoesNotExist": "absent",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class PodToleration:
    """A permanent toleration. A toleration for some seconds does not count, because its pod leaves anyway."""

    key: str
    operator: str
    value: str
    effect: str

    def covers(self, taint: TideTaint) -> bool:
        """Whether it tolerates this taint."""
        if self.effect not in ("", taint.effect):
            return False
        if self.operator == "Exists":
            return self.key in ("", taint.key)
        return self.key == taint.key and self.value == taint.value


@dataclass(frozen=True, slots=True)
class AffinityTerm:
    """One of the terms of a required node affinity: of these labels, and of these names."""

    labels: Selector
    names: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class TidePlacement:
    """The part of a pod that decides where it may run; many pods share it."""

    selector: tuple[tuple[str, str], ...] = ()
    affinity: tuple[AffinityTerm, ...] | None = None
    """One of them must hold; None: any node will do."""
    tolerations: tuple[PodToleration, ...] = ()

    def tolerates(self, taint: TideTaint) -> bool:
        """Whether a taint neither keeps the pod away nor ends it."""
        return taint.effect not in KEEPS_AWAY or any(one.covers(taint) for one in self.tolerations)

    def wants(self, name: str, labels: Mapping[str, str]) -> bool:
        """Return whether it may run on a node with this name and these labels, whatever its taints."""
        if any(labels.get(key) != value for key, value in self.selector):
            return False
        return self.affinity is None or any(
            term.labels.matches(labels) and (term.names is None or name in term.names) for term in self.affinity
        )


def placement_of(spec: Mapping[str, Any]) -> TidePlacement:
    """Read the placement of a pod's spec. An unreadable term matches no node, as in Kubernetes."""
    selector = spec.get("nodeSelector")
    return TidePlacement(
        selector=tuple(sorted((k, v) for k, v in _map(selector).items() if isinstance(v, str))),
        affinity=_affinity(spec),
        tolerations=tuple(_tolerations(_rows(spec.get("tolerations")))),
    )


def _affinity(spec: Mapping[str, Any]) -> tuple[AffinityTerm, ...] | None:
    node = _map(_map(spec.get("affinity")).get("nodeAffinity"))
    required = node.get("requiredDuringSchedulingIgnoredDuringExecution")
    if required is None:
        return None
    return tuple(_terms(_rows(_map(required).get("nodeSelectorTerms"))))


def _terms(rows: Iterable[Mapping[str, Any]]) -> Iterator[AffinityTerm]:
    for row in rows:
        names: frozenset[str] | None = None
        for field in _rows(row.get("matchFields")):
            values = field.get("values")
            names = frozenset(one for one in (values if isinstance(values, list) else ()) if isinstance(one, str))
        with suppress(Refused, AttributeError, KeyError, TypeError):
            parts = [
                expression(part["key"], _OPERATORS[part["operator"]], part.get("values") or ())
                for part in _rows(row.get("matchExpressions"))
            ]
            # An empty term matches nothing, as the scheduler has it.
            if parts or names is not None:
                yield AffinityTerm(Selector(tuple(parts)), names)


def _tolerations(rows: Iterable[Mapping[str, Any]]) -> Iterator[PodToleration]:
    for row in rows:
        if row.get("tolerationSeconds") is None:
            said = (row.get("key"), row.get("operator") or "Equal", row.get("value"), row.get("effect"))
            yield PodToleration(*(part if isinstance(part, str) else "" for part in said))


def _map(given: object) -> Mapping[str, Any]:
    return given if isinstance(given, Mapping) else {}


def _rows(given: object) -> Iterator[Mapping[str, Any]]:
    return (row for row in (given if isinstance(given, list) else ()) if isinstance(row, Mapping))
