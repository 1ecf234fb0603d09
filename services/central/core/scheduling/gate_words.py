"""Decisions about pods at the gate: which were released, and what the others wait for."""

from collections.abc import Iterator, Sequence

from services.central.core.profiles.capacity_gate import GATE
from services.central.core.scheduling.gate_release import GatedPod, Release
from shared.contracts.cluster.decision import Decided, DecidedObject
from shared.contracts.envelope import Reason

AREA = "scheduling"
MOST_SAID = 200
"""Most waiting pods with a decision in one pass; the others are behind them, and get one as they move forward."""


def decided_of(found: Release, released: Sequence[GatedPod], pods: Sequence[GatedPod]) -> Iterator[Decided]:
    """Return a decision for each released pod, and for the first of those that wait."""
    for pod in released:
        yield _decided(pod, "released", "there is room for it; the scheduler looks for its node", ())
    blocking = found.blocked_by
    if blocking is None:
        return
    free = {name: max(0, found.free.get(name, 0)) for name in blocking.requests}
    why = tuple(
        Reason(rule="gate", numbers={"resource": name, "asked": asked, "free": free[name]})
        for name, asked in sorted(blocking.requests.items())
        if asked > free[name]
    )
    words = "; ".join(
        f"{one.numbers['free']} of {one.numbers['asked']} {one.numbers['resource']} are free" for one in why
    )
    yield _decided(blocking, "gated", f"it waits for room: {words}", why)
    behind = sorted(
        (pod for pod in pods if set(pod.gates) == {GATE} and pod.turn > blocking.turn), key=lambda pod: pod.turn
    )
    for pod in behind[:MOST_SAID]:
        yield _decided(pod, "gated", f"it waits behind {blocking.key}, which comes first and waits for room", ())


def _decided(pod: GatedPod, verdict: str, message: str, why: tuple[Reason, ...]) -> Decided:
    about = DecidedObject(kind="pod", namespace=pod.namespace, name=pod.name, uid=pod.uid)
    return Decided(area=AREA, about=about, verdict=verdict, message=message, why=why)
