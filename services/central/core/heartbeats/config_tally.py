"""The tally of a configuration: how many nodes work with a revision, how many have refused it, and why."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from services.central.core.heartbeats.readiness import Ledger

LISTED_REFUSALS, LISTED_NODES = 20, 5
"""Bounds of the answer to `ask`, which must fit one message: reasons are few, but nodes could invent texts."""


@dataclass(slots=True)
class RefusedBy:
    """The nodes that refuse for one reason."""

    nodes: int = 0
    such_as: list[str] = field(default_factory=list)

    def add(self, node: str) -> None:
        """One node more; the first few are named."""
        self.nodes += 1
        if len(self.such_as) < LISTED_NODES:
            self.such_as.append(node)


@dataclass(frozen=True, slots=True)
class ConfigTally:
    """The state of one revision, node by node."""

    applied: int = 0
    refused: int = 0
    behind: int = 0
    """Nodes that have not reported it yet: silent, starting, or of an older version."""
    reasons: dict[tuple[str, int, str], RefusedBy] = field(default_factory=dict)
    """By service, revision and reason."""

    def counts(self) -> dict[str, int]:
        """The number of nodes in each state."""
        return {"applied": self.applied, "refused": self.refused, "behind": self.behind}

    def refusals(self) -> Iterator[dict[str, Any]]:
        """The reasons, those of most nodes first."""
        ordered = sorted(self.reasons.items(), key=lambda row: (-row[1].nodes, row[0]))
        for (service, revision, why), who in ordered[:LISTED_REFUSALS]:
            yield {"service": service, "revision": revision, "why": why, "nodes": who.nodes, "such_as": who.such_as}


def tally(ledger: Ledger, revision: int) -> ConfigTally:
    """Count the nodes by what they say of a revision; a refusal counts until the node has taken a newer one.

    A node's own entry may be newer than the one of all nodes, and counts as having taken that one, too.
    """
    applied = behind = 0
    reasons: dict[tuple[str, int, str], RefusedBy] = {}
    refusing: list[str] = []
    for node, heartbeat in ledger.items():
        if heartbeat.refusals:
            refusing.append(node)
        elif heartbeat.revision is not None and heartbeat.revision >= revision:
            applied += 1
        else:
            behind += 1
    for node in sorted(refusing):
        for service, refusal in ledger[node].refusals:
            reasons.setdefault((service, refusal.revision, refusal.why), RefusedBy()).add(node)
    return ConfigTally(applied, len(refusing), behind, reasons)
