"""Steps lead from one state of qrm to the next: an advice is accepted, then it is decided what shall be in force."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from services.qrm.core.active_advice import ActiveAdvice, Stage
from services.qrm.core.placement.arrangement import Arrangement, Node, arrange, arrange_floor
from services.qrm.core.placement.pools import Order
from shared.contracts.advice import PoolAdvice
from shared.core.cgroups.layout import RESERVE
from shared.core.cpus.cpuset import CpuSet
from shared.errors import Refused

NO_PODS: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class QrmState:
    """What one pass leaves to the next. Times are seconds of one monotonic clock."""

    active: ActiveAdvice | None = None
    reserve: CpuSet = field(default_factory=CpuSet)
    """The reserve pool of the last advice accepted: the floor spares it, too."""
    held: Mapping[str, CpuSet] = field(default_factory=dict)
    """CPUs that pods have for themselves, by UID."""
    stage: Stage = "floor"
    """How far the active advice counted in the last pass."""
    arranged: "Arranged | None" = None
    """The result of the last accepted advice."""
    floor: "Arranged | None" = None
    """The floor that the last lease named."""

    def stage_at(self, now_s: float) -> Stage:
        """How far the active advice counts at a time."""
        return self.active.stage(now_s) if self.active else "floor"

    def with_lease_until(self, until_s: float) -> "QrmState":
        """The same with another end of the active advice's lease."""
        return replace(self, active=self.active and replace(self.active, lease_until_s=until_s))


@dataclass(frozen=True, slots=True)
class Arranged:
    """An arrangement with all that it follows from: most advice asks for what the one before it asked for."""

    node: Node
    asked: tuple[object, ...]
    arrangement: Arrangement


@dataclass(frozen=True, slots=True)
class PassInput:
    """The observations of one pass."""

    node: Node
    now_s: float
    order: Order
    arranged: Arrangement | None = None
    """The meaning of the active advice on this node, if it has just been accepted."""
    pods_known: bool = True
    """Whether the pods were ever read: until then no pod is known to have ended."""


@dataclass(frozen=True, slots=True)
class PassDecision:
    """What must be in force after a pass."""

    stage: Stage
    arrangement: Arrangement
    refusal: str = ""
    """Why the active advice cannot be followed any more; then the stage is the floor."""


def accept(state: QrmState, node: Node, fresh: ActiveAdvice, order: Order) -> tuple[QrmState, Arrangement]:
    """Make an advice the active one; what it means on this node is handed on to `step`.

    Raises:
        Refused: it cannot be followed here; the state stays, and with it the last good advice for its lease.
    """
    # First, because it may refuse: the state is then unchanged.
    made = _arranged(state, node, fresh.advice, order)
    state = replace(state, active=fresh, reserve=made.pools.get(RESERVE, CpuSet()))
    return replace(state, arranged=Arranged(node, _asked(fresh.advice, order), made)), made


def _arranged(state: QrmState, node: Node, advice: PoolAdvice, order: Order) -> Arrangement:
    last = state.arranged
    if last is not None and (last.asked, last.node) == (_asked(advice, order), node):
        return last.arrangement
    return arrange(node, advice, order)


def _asked(advice: PoolAdvice, order: Order) -> tuple[object, ...]:
    """All that an arrangement takes from an advice."""
    return advice.pools, advice.overlap, order


def step(state: QrmState, seen: PassInput) -> tuple[QrmState, PassDecision]:
    """Decide what must be in force now: the active advice while it applies, otherwise the floor."""
    state = replace(state, stage=state.stage_at(seen.now_s))
    stage, refusal = state.stage, ""
    # Handed on and not computed again: both would be the same, at twice the cost.
    if seen.arranged is not None and stage != "floor":
        arrangement = seen.arranged
    else:
        try:
            arrangement = arrange_as(state, seen.node, seen.order)
        except Refused as error:  # the machine has become smaller since the advice was accepted
            stage, refusal = "floor", str(error)
            arrangement = arrange_floor(seen.node, state.reserve)
    # An empty list that was never read is not "all pods have gone": their CPUs would be given to others.
    held = arrangement.held if seen.pods_known else state.held
    return replace(state, held=held), PassDecision(stage, arrangement, refusal)


def arrange_as(state: QrmState, node: Node, order: Order) -> Arrangement:
    """Arrange a node in the way in which it is arranged now.

    Raises:
        Refused: the active advice cannot be followed there.
    """
    if state.active is None or state.stage == "floor":
        return arrange_floor(node, state.reserve)
    return _arranged(state, node, state.active.advice, order)


def lease_floor(state: QrmState, node: Node) -> tuple[QrmState, Arrangement]:
    """Return the floor that the lease names. It is the same for starting pods, because without qrm the end of a
    start is not noticed."""
    last, node = state.floor, replace(node, starting=NO_PODS)
    if last is not None and (last.asked, last.node) == ((state.reserve,), node):
        return state, last.arrangement
    made = arrange_floor(node, state.reserve)
    return replace(state, floor=Arranged(node, (state.reserve,), made)), made
