"""Report the node's conditions in `status.conditions`, from the services' health and the newest allocation.

Type, status and reason are fixed words. The message may contain numbers, so a change of the message alone is not
urgent. Central reports whether the agent runs at all (AgentReady, AgentNotFound), because a dead agent reports nothing.
"""

from typing import Any

from services.reporter.core.field import FieldSettings, FieldView, Fragment, ReportField, plain
from shared.contracts.allocation import Allocation


def fragment(view: FieldView) -> Fragment | None:
    """Return ServicesReady; ConfigRefused, NodeStrategyUnread, HostApplicationUnmeasured and CountersUnmeasured if they
    apply;
    AllocationFresh and AllocationApplied; and the conditions of qrm and the reporter."""
    found = [_services_ready(view), _config_refused(view), _node_strategy_unread(view), *_allocation(view), *_own(view),
             _applications_unmeasured(view), _counters_unmeasured(view)]  # fmt: skip
    conditions = [row | {"lastHeartbeatTime": _time(view)} for row in found if row is not None]
    return {"status": {"conditions": conditions}} if conditions else None


def urgent(before: Fragment | None, now: Fragment | None, _settings: FieldSettings) -> bool:
    """Return whether a condition appeared, disappeared, or changed its status or reason."""
    return _facts(before) != _facts(now)


def _services_ready(view: FieldView) -> dict[str, str] | None:
    # No service was heard: that says nothing about the services, so the condition is left out rather than reported as
    # bad.
    if not view.services:
        return None
    failing = [f"{s.service}: {s.why or 'not ok'}" for s in view.services if not s.ok]
    if failing:
        return _row("ServicesReady", False, "WithServicesNotReady", "; ".join(failing))
    return _row("ServicesReady", True, "AllServicesReady", f"{len(view.services)} services are well")


def _config_refused(view: FieldView) -> dict[str, str] | None:
    """Return a condition unless every service works with the newest configuration."""
    refused = [
        f"{s.service}: revision {s.config_refused.revision}: {s.config_refused.why}"
        for s in view.services
        if s.config_refused is not None
    ]
    if not refused:
        return None
    return _row("ConfigRefused", True, "Refused", f"the configuration before stays in force; {'; '.join(refused)}")


def _node_strategy_unread(view: FieldView) -> dict[str, str] | None:
    """Return a condition unless everything that the Node says about its own colocation is followed."""
    if not view.node_unread:
        return None
    return _row("NodeStrategyUnread", True, "Unread", f"correct or remove on the Node: {'; '.join(view.node_unread)}")


def _applications_unmeasured(view: FieldView) -> dict[str, str] | None:
    """Return a condition unless every configured application outside of pods has figures, or no sample is new."""
    unmeasured = view.sample.unmeasured_applications if view.sample is not None and view.sample_fresh else ""
    if not unmeasured:
        return None
    why = f"counted as the system's use (metrics.host_applications): {unmeasured}"
    return _row("HostApplicationUnmeasured", True, "Unmeasured", why)


def _counters_unmeasured(view: FieldView) -> dict[str, str] | None:
    """Return nothing if performance counters are off or have figures, or no sample is fresh."""
    unmeasured = view.sample.counters_unmeasured if view.sample is not None and view.sample_fresh else ""
    return _row("CountersUnmeasured", True, "Unmeasured", unmeasured) if unmeasured else None


def _allocation(view: FieldView) -> list[dict[str, str]]:
    if view.allocation is None:
        return [_row("AllocationFresh", False, "NeverReceived", "no allocation was received yet: nothing is offered")]
    fresh = (
        _row("AllocationFresh", True, "Fresh", "qrm is heard of")
        if view.allocation_fresh
        else _row("AllocationFresh", False, "Stale", f"qrm is silent: the values of {view.allocation.ref} are kept")
    )
    return [
        fresh,
        _applied(view.allocation),
        *(_row(c.type, True, c.type, c.message) for c in view.allocation.conditions),
    ]


def _own(view: FieldView) -> list[dict[str, str]]:
    return [_row(c.type, True, c.type, c.message) for c in view.conditions]


def _applied(allocation: Allocation) -> dict[str, str]:
    # The API wants a reason that is one word in CamelCase.
    reason = allocation.status.title().replace("-", "")
    why = "; ".join(reason.rule for reason in allocation.why) or f"the newest allocation is {allocation.status}"
    return _row("AllocationApplied", allocation.status == "applied", reason, why)


def _row(kind: str, holds: bool, reason: str, message: str) -> dict[str, str]:
    return {"type": kind, "status": str(holds), "reason": reason, "message": message}


def _time(view: FieldView) -> str:
    return view.now.isoformat(timespec="seconds").replace("+00:00", "Z")


def _facts(document: Any) -> list[tuple[str, str, str]]:
    # The heartbeat's time differs every time, and messages hold numbers: by them every report would be urgent.
    rows = [] if document is None else document["status"]["conditions"]
    return [(row["type"], row["status"], row["reason"]) for row in rows]


def watches(view: FieldView) -> object:
    """Return what decides which conditions exist, their status and their reason, without their messages."""
    allocation, sample = view.allocation, view.sample
    return (
        [(one.service, one.ok, one.config_refused is None) for one in view.services],
        bool(view.node_unread),
        sample is not None and view.sample_fresh and bool(sample.unmeasured_applications),
        sample is not None and view.sample_fresh and bool(sample.counters_unmeasured),
        view.allocation_fresh,
        None if allocation is None else (allocation.status, [one.type for one in allocation.conditions]),
        [one.type for one in view.conditions],
    )


FIELD = ReportField(FieldSettings, plain(fragment), urgent, watches)
