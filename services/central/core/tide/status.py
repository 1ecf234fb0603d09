"""The status of a pool: its nodes by role, what changes and why, and whether the pool can be worked with."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from services.central.core.tide.entry import EntryStep, Move
from services.central.core.tide.marks import standing_of
from services.central.core.tide.plan import PoolPlan
from services.central.core.tide.pool import TAINT_KEYS, TidePoolSeen
from services.central.core.tide.roles import Role
from services.central.core.tide.seen import TideNodeSeen

VALID, SETTLED = "Valid", "Settled"
MOST_LISTED, MOST_MESSAGE = 100, 1024
Status = dict[str, Any]


@dataclass(frozen=True, slots=True)
class TidePassResult:
    """The result of a pass: each move with its step, and nodes that could not be written."""

    plan: PoolPlan
    steps: Sequence[tuple[Move, EntryStep]] = ()
    failures: Mapping[str, str] | None = None
    observes: bool = False
    """Whether it only observed, and nothing was done."""


def refused_status(seen: TidePoolSeen, refusal: tuple[str, str], now: datetime) -> Status:
    """Return the status of an ignored pool; its nodes and their entries stay unchanged."""
    reason, message = refusal
    wanted = [
        _condition(seen, VALID, holds=False, reason=reason, message=message),
        _condition(seen, SETTLED, holds=False, reason=reason, message="the pool is not worked on"),
    ]
    return {"observedGeneration": seen.generation, "conditions": _stamped(seen, wanted, now)}


def worked_status(seen: TidePoolSeen, nodes: Iterable[TideNodeSeen], result: TidePassResult, now: datetime) -> Status:
    """Of a pool after a pass."""
    by_role: dict[Role, list[str]] = {
        "online_reserve": [], "offline_reserve": [], "tide_online": [], "tide_offline": [],
    }  # fmt: skip
    for node in sorted(nodes, key=lambda one: one.name):
        standing = standing_of(node.labels, seen.name)
        if standing is not None and standing != "other":
            by_role[standing].append(node.name)
    reason, message = settled_by(result)
    wanted = [
        _condition(seen, VALID, holds=True, reason="Read", message=""),
        _condition(seen, SETTLED, holds=reason == SETTLED, reason=reason, message=message),
    ]
    return {
        "observedGeneration": seen.generation,
        "reserveNodes": {"onlineNodes": by_role["online_reserve"], "offlineNodes": by_role["offline_reserve"]},
        "tideNodes": {
            "nodes": sorted([*by_role["tide_online"], *by_role["tide_offline"]]),
            "onlineNodes": by_role["tide_online"],
            "offlineNodes": by_role["tide_offline"],
        },
        "onlineCount": len(by_role["online_reserve"]) + len(by_role["tide_online"]),
        "offlineCount": len(by_role["offline_reserve"]) + len(by_role["tide_offline"]),
        "changing": [
            {"node": move.node, "to": move.role, "step": step.what, "why": step.why[:MOST_MESSAGE]}
            for move, step in result.steps[:MOST_LISTED]
        ],
        TAINT_KEYS: _keys(seen, result),
        "waitingPods": list(result.plan.waiting[:MOST_LISTED]),
        "conditions": _stamped(seen, wanted, now),
    }


def _keys(seen: TidePoolSeen, result: TidePassResult) -> list[str]:
    """Keys of taints that nodes may carry: the former ones are forgotten when every node is as it should be."""
    taints = seen.marks.taints
    gone = not (result.steps or result.plan.leaving or result.failures)
    return sorted(taints.in_force if gone else taints.in_force | taints.former)


def settled_by(result: TidePassResult) -> tuple[str, str]:
    """Reason and message: what fails first, then who waits, then what is under way."""
    failures, plan = result.failures or {}, result.plan
    blocked = [f"{move.node}: {step.why}" for move, step in result.steps if step.what == "wait"]
    under_way = [f"{move.node} to {move.role}: {step.why}" for move, step in result.steps if step.what != "wait"]
    if failures:
        return "NotWritten", "; ".join(f"{node}: {why}" for node, why in sorted(failures.items()))
    if result.observes and (blocked or under_way or plan.leaving):
        return "Observing", f"nothing is changed in mode observe; would: {'; '.join([*under_way, *blocked])}"
    if plan.stuck:
        return "PodsWait", f"no node of the pool helps {', '.join(plan.stuck[:MOST_LISTED])}"
    if under_way:
        return "Changing", "; ".join(under_way)
    if blocked:
        return "Blocked", "; ".join(blocked)
    if plan.foreign:
        return "Foreign", f"marked by another pool, left alone: {', '.join(plan.foreign[:MOST_LISTED])}"
    return SETTLED, ""


def _condition(seen: TidePoolSeen, name: str, *, holds: bool, reason: str, message: str) -> Status:
    status = "True" if holds else "False"
    said = {"type": name, "status": status, "reason": reason, "message": message[:MOST_MESSAGE]}
    return {**said, "observedGeneration": seen.generation}


def _stamped(seen: TidePoolSeen, wanted: Sequence[Status], now: datetime) -> list[Status]:
    """Add the time of each condition's last change, and the conditions of others after them."""
    rows = (seen.status or {}).get("conditions")
    listed = [row for row in (rows if isinstance(rows, list) else ()) if isinstance(row, Mapping)]
    there = {str(row.get("type")): row for row in listed}
    stamped = []
    for one in wanted:
        before = there.pop(one["type"], {})
        since = before.get("lastTransitionTime")
        same = before.get("status") == one["status"] and isinstance(since, str)
        stamped.append({**one, "lastTransitionTime": since if same else f"{now:%Y-%m-%dT%H:%M:%SZ}"})
    return [*stamped, *(dict(row) for row in there.values())]


def differs(seen: TidePoolSeen, status: Status) -> bool:
    """Whether the object does not say so yet; fields that this status does not name stay."""
    there = seen.status or {}
    return any(there.get(name) != value for name, value in status.items())
