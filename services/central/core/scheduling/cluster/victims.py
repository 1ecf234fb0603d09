"""Answers about pods that would be evicted for another one: victims are unchanged, nodes can only become fewer."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from services.central.core.scheduling.extender_reply import value_of


@dataclass(frozen=True, slots=True)
class PreemptRequest:
    """A pod, and for each node the UIDs of the pods that would go for it, and how many budgets they would break."""

    pod: Mapping[str, Any]
    victims: Mapping[str, tuple[str, ...]]
    violations: Mapping[str, int]

    @classmethod
    def read(cls, body: object) -> Self | None:
        """The request in a body, its keys in any case; None where pod or nodes are missing or of other kinds."""
        pod = value_of(body, "Pod")
        rows = value_of(body, "NodeNameToMetaVictims") or value_of(body, "NodeNameToVictims")
        if not isinstance(pod, dict) or not isinstance(rows, dict):
            return None
        victims = {str(node): _uids(row) for node, row in rows.items()}
        return cls(pod, victims, {str(node): _violations(row) for node, row in rows.items()})

    def reply(self, fits: Mapping[str, bool]) -> dict[str, Any]:
        """Return the nodes on which the pod would fit without these victims, and unknown nodes."""
        return {
            "NodeNameToMetaVictims": {
                node: {"Pods": [{"UID": uid} for uid in uids], "NumPDBViolations": self.violations[node]}
                for node, uids in self.victims.items()
                if fits.get(node, True)
            }
        }


def _uids(row: object) -> tuple[str, ...]:
    rows = value_of(row, "Pods")
    found = (
        value_of(one, "UID") or value_of(value_of(one, "metadata"), "uid")
        for one in (rows if isinstance(rows, list) else ())
    )
    return tuple(uid for uid in found if isinstance(uid, str))


def _violations(row: object) -> int:
    given = value_of(row, "NumPDBViolations")
    return given if isinstance(given, int) and not isinstance(given, bool) else 0
