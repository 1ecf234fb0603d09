"""The published decisions of the controller of tide pools."""

from services.central.core.tide.entry import EntryStep, Move
from services.central.core.tide.pool import TidePoolSeen
from services.central.core.tide.status import TidePassResult, settled_by
from shared.contracts.cluster.decision import Decided, DecidedObject
from shared.contracts.envelope import Reason

AREA = "tide"


def refusal_said(seen: TidePoolSeen, refusal: tuple[str, str]) -> Decided:
    """The pool is not worked on."""
    reason, message = refusal
    return Decided(area=AREA, about=_about(seen), verdict="refused", message=message, why=(Reason(rule=reason),))


def said_of_pass(seen: TidePoolSeen, result: TidePassResult) -> Decided:
    """Return the result of a pass: by node the step and why, and the number of nodes on each side."""
    verdict, message = settled_by(result)
    online = sum(role.endswith("online") or role.startswith("online") for role in result.plan.roles.values())
    counts = Reason(
        rule="nodes by side, where they are or on their way to",
        numbers={
            "online": online,
            "offline": len(result.plan.roles) - online,
            "reserve_online": result.plan.reserves.online,
            "reserve_offline": result.plan.reserves.offline,
            "waiting_pods": len(result.plan.waiting),
        },
    )
    steps = [
        Reason(rule=step.why, numbers={"node": move.node, "to": move.role, "step": step.what})
        for move, step in result.steps
    ]
    return Decided(area=AREA, about=_about(seen), verdict=_VERDICTS[verdict], message=message, why=(counts, *steps))


def step_said(seen: TidePoolSeen, move: Move, step: EntryStep) -> Decided:
    """Return the decision on a node's step."""
    about = DecidedObject(kind="node", name=move.node)
    numbers = {"pool": seen.name, "to": move.role, "before": move.before, "for_pod": move.for_pod}
    verdict = {"close": "closed", "enter": "changed", "give_up": "given_up"}.get(step.what, step.what)
    return Decided(
        area=AREA,
        about=about,
        verdict=verdict,
        message=f"{verdict} for {move.role}: {step.why}",
        why=(Reason(rule=step.why, numbers=numbers),),
    )


_VERDICTS = {
    "Settled": "settled", "Changing": "changing", "Blocked": "blocked", "PodsWait": "pods_wait",
    "NotWritten": "not_written", "Observing": "observing", "Foreign": "foreign",
}  # fmt: skip


def _about(seen: TidePoolSeen) -> DecidedObject:
    return DecidedObject(kind="tidenodepool", name=seen.name, uid=seen.uid)
