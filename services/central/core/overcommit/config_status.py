"""The status of a NodeOvercommitConfig: whether it is valid, which nodes it controls, and the result there."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from services.central.core.overcommit.config_documents import OvercommitConfig
from services.central.core.overcommit.node_plan import NodePlan, Standing
from shared.contracts.kube.overcommit import POOL_LABEL

VALID, ADVERTISED = "Valid", "Advertised"
OURS = (VALID, ADVERTISED)
MOST_MESSAGE, MOST_NAMED = 1024, 3
WORDS: Mapping[Standing, str] = {
    "bears_less": "can bear less than was set",
    "unheard": "do not say what they can bear (the agent's setting reporter.overcommit.enabled)",
    "waits_for_kubelet": "wait for kubelet to write its status through the webhook",
    "withdrawing": "wait for kubelet to write its own figures",
}

Condition = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ConfigStanding:
    """The result of a config: why it is refused, which config controls its pool, and the plans of its nodes."""

    refusal: str
    ruler: str | None
    """The config that has its pool."""
    plans: Mapping[str, NodePlan]


def status_due(config: OvercommitConfig, standing: ConfigStanding, now: datetime) -> dict[str, Any] | None:
    """Return the status that the object should have; None if it has it. Conditions of others stay."""
    nodes = sorted(standing.plans)
    wanted = conditions_due(config, standing)
    there = {str(one.get("type")): one for one in config.conditions}
    same = all(there.get(one["type"], {}).get(key) == value for one in wanted for key, value in one.items())
    stale = (there.keys() & set(OURS)) - {one["type"] for one in wanted}
    if same and not stale and list(config.matched) == nodes:
        return None
    others = [one for one in config.conditions if one.get("type") not in OURS]
    return {"matchedNodeList": nodes, "conditions": [*others, *(_dated(one, there, now) for one in wanted)]}


def conditions_due(config: OvercommitConfig, standing: ConfigStanding) -> list[Condition]:
    """Whether it holds, and of one that does what came of it; without their times."""
    return [_valid(config, standing), *_advertised(config, standing)]


def _valid(config: OvercommitConfig, standing: ConfigStanding) -> Condition:
    if standing.refusal:
        message = f"{standing.refusal}; until it is mended no node follows this config"
        return _condition(config, VALID, "Refused", message, holds=False)
    if standing.ruler != config.name:
        message = (
            f"nodes with {POOL_LABEL}={config.claim.pool} are ruled by NodeOvercommitConfig {standing.ruler}, which is "
            "newer, or as old and before this one by name; give one of the two another value"
        )
        return _condition(config, VALID, "PoolTaken", message, holds=False)
    return _condition(config, VALID, "InForce", "", holds=True)


def _advertised(config: OvercommitConfig, standing: ConfigStanding) -> list[Condition]:
    """Only of a config that rules its pool."""
    if standing.refusal or standing.ruler != config.name:
        return []
    if not standing.plans:
        message = f"no node has the label {POOL_LABEL}={config.claim.pool}"
        return [_condition(config, ADVERTISED, "NoNodes", message, holds=False)]
    by_word = {
        word: [name for name, plan in sorted(standing.plans.items()) if plan.standing == key]
        for key, word in WORDS.items()
    }
    parts = [f"{len(names)} {word}: {_named(names)}" for word, names in by_word.items() if names]
    reason = "NotAsSet" if parts else "AsSet"
    message = f"of {len(standing.plans)} nodes " + "; ".join(parts) if parts else ""
    return [_condition(config, ADVERTISED, reason, message, holds=not parts)]


def _named(names: Sequence[str]) -> str:
    more = len(names) - MOST_NAMED
    return ", ".join(names[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def _condition(config: OvercommitConfig, kind: str, reason: str, message: str, *, holds: bool) -> Condition:
    return {
        "type": kind,
        "status": "True" if holds else "False",
        "reason": reason,
        "message": message[:MOST_MESSAGE],
        "observedGeneration": config.generation,
    }


def _dated(one: Condition, there: Mapping[str, Condition], now: datetime) -> Condition:
    before = there.get(one["type"], {})
    same = before.get("status") == one["status"] and isinstance(before.get("lastTransitionTime"), str)
    return {**one, "lastTransitionTime": before["lastTransitionTime"] if same else now.strftime("%Y-%m-%dT%H:%M:%SZ")}
