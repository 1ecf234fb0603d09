"""The status of a ResourceRecommend: problems, knowledge, recommendations, and what was applied."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from services.central.core.recommendation.advice import ContainerAdvice, UsageStanding
from services.central.core.recommendation.objects.resource_recommend import RecommendSeen
from services.central.core.recommendation.objects.workloads import amounts_of
from services.central.core.recommendation.validity import Validity
from shared.contracts.kube.quantities import format_millis

VALIDATED, INITIALIZED, PROVIDED, APPLIED = "Validated", "Initialized", "RecommendationProvided", "Applied"
MAX_MESSAGE = 1024
SAME_PERCENT = 5
"""A smaller difference is within one bucket and not worth a write."""


@dataclass(frozen=True, slots=True)
class ConditionDue:
    """One condition: whether it holds, and why."""

    type: str
    holds: bool
    reason: str
    said: str = ""


def verdicts(valid: Validity, known: UsageStanding) -> list[ConditionDue]:
    """Return upstream's three conditions, all of them."""
    if not valid.ok:
        return [
            ConditionDue(VALIDATED, False, valid.code, valid.said),
            ConditionDue(INITIALIZED, False, "NotValidated"),
            ConditionDue(PROVIDED, False, "NotValidated"),
        ]
    begun = known.reason != "NoSamples"
    return [
        ConditionDue(VALIDATED, True, "Valid"),
        ConditionDue(INITIALIZED, begun, "UsageIsKnown" if begun else known.reason, "" if begun else known.said),
        ConditionDue(PROVIDED, not known.reason, known.reason or "Recommended", known.said),
    ]


def unreadable(problem: str) -> list[ConditionDue]:
    """Return the conditions of an object whose spec cannot be followed."""
    return [
        ConditionDue(VALIDATED, False, "Unreadable", problem),
        ConditionDue(INITIALIZED, False, "NotValidated"),
        ConditionDue(PROVIDED, False, "NotValidated"),
    ]


def conditions(wanted: Sequence[ConditionDue], there: object, now: datetime) -> list[Mapping[str, Any]]:
    """The conditions with their times; one that is as it was keeps its time, and those of others stay."""
    before = {str(one.get("type")): one for one in there if isinstance(one, Mapping)} if isinstance(there, list) else {}
    found: list[Mapping[str, Any]] = []
    for one in wanted:
        status, old = str(one.holds), before.pop(one.type, {})
        since = old.get("lastTransitionTime") if old.get("status") == status else None
        found.append(
            {
                "type": one.type,
                "status": status,
                "reason": one.reason,
                "message": one.said[:MAX_MESSAGE],
                "lastTransitionTime": since if isinstance(since, str) else _time(now),
            }
        )
    ours = (VALIDATED, INITIALIZED, PROVIDED, APPLIED)
    return [*found, *(one for kind, one in before.items() if kind not in ours)]


def recommendation(
    advice: Mapping[str, ContainerAdvice], current: Mapping[str, Mapping[str, int]]
) -> list[Mapping[str, Any]]:
    """The figures of each container, as upstream's status has them."""
    return [
        {
            "containerName": name,
            "requests": {
                "current": quantities(current.get(name, {})),
                "target": quantities(one.target),
                "uncappedTarget": quantities(one.uncapped),
            },
        }
        for name, one in sorted(advice.items())
    ]


def status_due(
    seen: RecommendSeen,
    verdict: Sequence[ConditionDue],
    figures: Sequence[Mapping[str, Any]] | None,
    now: datetime,
) -> Mapping[str, Any] | None:
    """Return the status that it should have, None if it has it; without `figures` the last ones stay."""
    there = seen.status or {}
    wanted: dict[str, Any] = {
        "observedGeneration": seen.generation,
        "conditions": conditions(verdict, there.get("conditions"), now),
    }
    if figures is not None:
        wanted["recommendResources"] = {"containerRecommendations": list(figures)}
        wanted["lastRecommendationTime"] = _time(now)
    return None if all(there.get(name) == value for name, value in wanted.items()) else wanted


def figures_due(seen: RecommendSeen, advice: Mapping[str, ContainerAdvice], now: datetime, refresh_s: float) -> bool:
    """Whether the figures in the status are to be replaced: for a new generation, for more memory after a kill, and
    when they are old enough and differ."""
    there, written = seen.status or {}, written_targets(seen.status)
    if there.get("observedGeneration") != seen.generation or written.keys() != advice.keys():
        return True
    if any(one.from_oom and _more(one.target, written[name], "memory") for name, one in advice.items()):
        return True
    if any(one.target.keys() != written[name].keys() for name, one in advice.items()):
        return True
    age_s = _age_s(there.get("lastRecommendationTime"), now)
    return (age_s is None or age_s >= refresh_s) and any(
        _differ(amount, written[name][resource])
        for name, one in advice.items()
        for resource, amount in one.target.items()
    )


def written_targets(status: Mapping[str, Any] | None) -> dict[str, dict[str, int]]:
    """Return the targets of a status by container, without unreadable ones."""
    resources = (status or {}).get("recommendResources")
    rows = resources.get("containerRecommendations") if isinstance(resources, Mapping) else None
    found = {}
    for row in rows if isinstance(rows, list) else ():
        requests = row.get("requests") if isinstance(row, Mapping) else None
        name = row.get("containerName") if isinstance(row, Mapping) else None
        if isinstance(name, str) and isinstance(requests, Mapping):
            found[name] = amounts_of(requests.get("target"))
    return found


def quantities(amounts: Mapping[str, int]) -> dict[str, str]:
    """Amounts as the API server writes them."""
    return {name: format_millis(value) if name == "cpu" else _bytes(value) for name, value in sorted(amounts.items())}


def _bytes(value: int) -> str:
    for unit, size in (("Gi", 1 << 30), ("Mi", 1 << 20), ("Ki", 1 << 10)):
        if value and value % size == 0:
            return f"{value // size}{unit}"
    return str(value)


def _more(target: Mapping[str, int], written: Mapping[str, int], resource: str) -> bool:
    return target.get(resource, 0) > written.get(resource, 0)


def _differ(one: int, other: int) -> bool:
    return abs(one - other) * 100 > max(one, other) * SAME_PERCENT


def _time(now: datetime) -> str:
    return now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _age_s(given: object, now: datetime) -> float | None:
    try:
        return (now - datetime.fromisoformat(given)).total_seconds() if isinstance(given, str) else None
    except (ValueError, TypeError):
        return None
