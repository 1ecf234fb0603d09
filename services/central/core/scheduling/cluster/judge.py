"""`Judge` says whether a node takes a pod: every rule that the extender's filter follows, in one place."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from services.central.core.scheduling.amounts import Amounts
from services.central.core.scheduling.cluster.cluster_view import ClusterView, NodeState
from services.central.core.scheduling.cluster.cnr_taints import keeping_away
from services.central.core.scheduling.cluster.pod_asks import PodAsked
from services.central.core.scheduling.cluster.reservations import Reservations
from services.central.core.scheduling.extender_reply import NodeStanding
from services.central.core.scheduling.load.expected_use import ExpectedUse, together
from services.central.core.scheduling.load.filter import Ceiling, LoadLimits, judge_age, judge_load
from services.central.core.scheduling.reclaimed_fit import insufficient

FITS = NodeStanding(fits=True)


@dataclass(frozen=True, slots=True)
class Now:
    """One moment on both clocks: ours, which never goes back, and the one that objects are stamped with."""

    monotonic_s: float
    wall_s: float


@dataclass(frozen=True, slots=True)
class Looking:
    """A pod that looks for a node, with what is the same for all nodes."""

    pod: PodAsked
    reclaimed: Amounts
    estimate: Amounts
    ceiling: Ceiling | None
    """None: no load keeps it away."""

    @property
    def asks_reclaimed(self) -> bool:
        """Whether it takes anything of an offer."""
        return any(self.reclaimed.values())


@dataclass(frozen=True, slots=True)
class NodeLeft:
    """A node with the pods that are on their way to it."""

    requested: Amounts
    expected: ExpectedUse | None


class Judge:
    """Holds pods against nodes, with what is on its way there."""

    def __init__(self, view: ClusterView, reservations: Reservations, limits: LoadLimits) -> None:
        self._view, self._reservations, self._limits = view, reservations, limits

    def looking(self, pod: PodAsked) -> Looking:
        """A pod that looks for a node."""
        ask = pod.seen.ask
        ceiling = Ceiling.of(self._limits, prod=ask.prod, daemonset=ask.daemonset)
        return Looking(pod, ask.reclaimed, self._view.estimate(ask), ceiling)

    def verdicts(self, looking: Looking, nodes: Iterable[str], now: Now) -> dict[str, NodeStanding]:
        """Of each node; one of which nothing is known takes the pod, for the scheduler knows the Node itself."""
        return {node: self._verdict(looking, self._view.state(node, now.monotonic_s), now) for node in nodes}

    def fits_without(self, looking: Looking, node: str, victims: Iterable[str], now: Now) -> bool:
        """Whether a pod could come once these pods, by UID, are gone; what they use is not known, so load says nothing.

        The other pods on their way count on: room that is made for this one is not theirs.
        """
        state = self._view.state(node, now.monotonic_s)
        if state.taints and keeping_away(state.taints, looking.pod.seen.ask.qos, looking.pod.tolerations):
            return False
        if not looking.asks_reclaimed or state.offered is None:
            return True
        there = self._view.pods.of(node).pods
        gone = [there[uid].ask.reclaimed for uid in set(victims) if uid in there]
        taken = dict(self.left(looking, state).requested)
        for amounts in gone:
            taken = {name: amount - amounts.get(name, 0) for name, amount in taken.items()}
        return not insufficient(looking.reclaimed, state.offered, taken)

    def left(self, looking: Looking, state: NodeState) -> NodeLeft:
        """What the other pods leave of a node that were let onto it and are not seen there yet."""
        held = self._reservations.on(state.name)
        if not held or (len(held) == 1 and looking.pod.seen.uid in held):
            return NodeLeft(state.requested, state.expected)
        requested, expected = state.requested, state.expected
        for uid, ask in held.items():
            if uid == looking.pod.seen.uid:
                continue
            requested = together(requested, ask.reclaimed)
            if expected is not None:
                coming = self._view.estimate(ask)
                prod = together(expected.prod, coming) if ask.prod else expected.prod
                expected = ExpectedUse(together(expected.everything, coming), prod)
        return NodeLeft(requested, expected)

    def _verdict(self, looking: Looking, state: NodeState, now: Now) -> NodeStanding:
        pod = looking.pod
        away = keeping_away(state.taints, pod.seen.ask.qos, pod.tolerations) if state.taints else ()
        if away:
            # Nobody who makes room takes a taint away with it.
            return NodeStanding(False, f"CNR taint {away[0].key} is not tolerated", unresolvable=True)
        left = self.left(looking, state)
        # Without any offer that is known the Node's own amounts speak, which the scheduler has looked at.
        if looking.asks_reclaimed and state.offered is not None:
            lacking = insufficient(looking.reclaimed, state.offered, left.requested)
            if lacking:
                return NodeStanding(False, _lacking(lacking, looking.reclaimed, state.offered, left.requested))
        return self._load_verdict(looking, state, left.expected, now)

    def _load_verdict(self, looking: Looking, state: NodeState, expected: ExpectedUse | None, now: Now) -> NodeStanding:
        if looking.ceiling is None or state.load is None or expected is None:
            return FITS
        found = judge_age(now.wall_s - state.load.measured_s, self._limits)
        if found is None:
            found = judge_load(looking.ceiling, looking.estimate, expected, state.allocatable)
        if found.reason is None:
            return FITS
        resource = found.reason.partition(":")[2]
        if not resource:
            age_s = now.wall_s - state.load.measured_s
            return NodeStanding(False, f"{found.reason}: measured {age_s:.0f} s ago")
        most = looking.ceiling.percents[resource]
        return NodeStanding(False, f"{found.reason}: {found.usage_percent[resource]} % with this pod, at most {most} %")


def _lacking(names: Iterable[str], request: Amounts, offered: Amounts, taken: Mapping[str, int]) -> str:
    return "; ".join(
        f"Insufficient {name}: asks for {request[name]}, {max(0, offered.get(name, 0) - taken.get(name, 0))} of "
        f"{offered.get(name, 0)} left"
        for name in names
    )
