"""`Judge` decides whether a node accepts a pod: every rule of the extender's filter, in one place."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from services.central.core.overcommit.fit import OvercommittedNode, overcommit_fit
from services.central.core.scheduling.amounts import Amounts
from services.central.core.scheduling.cluster.cnr_taints import KEEPS_AWAY, keeping_away
from services.central.core.scheduling.cluster.placement_view import BINDING, NodeState, PlacementView
from services.central.core.scheduling.cluster.pod_asks import PodAsked
from services.central.core.scheduling.cluster.reservations import Reservations
from services.central.core.scheduling.extender_reply import NodeStanding
from services.central.core.scheduling.load.expected_use import ExpectedUse, together
from services.central.core.scheduling.load.filter import Ceiling, LoadLimits, judge_age, judge_load
from services.central.core.scheduling.numa.binding import BindablePod
from services.central.core.scheduling.numa.coming import with_coming
from services.central.core.scheduling.numa.fit import numa_fit
from services.central.core.scheduling.numa.machine import Machine
from services.central.core.scheduling.reclaimed_fit import insufficient

Rule = Literal["fits", "cnr_taint", "reclaimed_fit", "overcommit_fit", "numa_fit", "load", "metric_expired"]

MOST_CHARACTERS = 1024
"""Of what is written on a Node; the chart's policy takes no more."""


@dataclass(frozen=True, slots=True)
class JudgedNode:
    """The verdict on a node for a pod: the rule that excludes it, and its figures."""

    standing: NodeStanding
    rule: Rule
    numbers: Mapping[str, float | str] = field(default_factory=dict)


FITS = JudgedNode(NodeStanding(fits=True), "fits")


@dataclass(frozen=True, slots=True)
class Now:
    """One moment on both clocks: our monotonic one, and the one that stamps objects."""

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
    machine: Machine | None


class Judge:
    """Holds pods against nodes, with what is on its way there."""

    def __init__(self, view: PlacementView, reservations: Reservations, limits: LoadLimits) -> None:
        self.view, self._reservations, self._limits = view, reservations, limits

    def looking(self, pod: PodAsked) -> Looking:
        """A pod that looks for a node."""
        ask = pod.seen.ask
        ceiling = Ceiling.of(self._limits, prod=ask.prod, daemonset=ask.daemonset)
        return Looking(pod, ask.reclaimed, self.view.estimate(ask), ceiling)

    def judged(self, looking: Looking, nodes: Iterable[str], now: Now) -> dict[str, JudgedNode]:
        """Judge each node; an unknown node accepts the pod, because the scheduler knows the Node itself."""
        return {node: self._verdict(looking, self.view.state(node, now.monotonic_s), now) for node in nodes}

    def fits_without(self, looking: Looking, node: str, victims: Iterable[str], now: Now) -> bool:
        """Return whether a pod fits after the eviction of these pods, by UID; their use is unknown, so load does not
        count.

        Other pods on their way still count: they must not use room that is made for this pod.
        """
        state = self.view.state(node, now.monotonic_s)
        if state.taints and keeping_away(state.taints, looking.pod.seen.ask.qos, looking.pod.tolerations):
            return False
        if not looking.asks_reclaimed or state.offered is None:
            return True
        there = self.view.pods.of(node).pods
        gone = [there[uid].ask.reclaimed for uid in set(victims) if uid in there]
        taken = dict(self.left(looking, state).requested)
        for amounts in gone:
            taken = {name: amount - amounts.get(name, 0) for name, amount in taken.items()}
        return not insufficient(looking.reclaimed, state.offered, taken)

    def refuses(self, node: str, now: Now) -> str:
        """Return why a node excludes pods whatever they request; the words change only when the reason does."""
        return ", ".join(self._refusals(node, now))[:MOST_CHARACTERS]

    def _refusals(self, node: str, now: Now) -> list[str]:
        state = self.view.state(node, now.monotonic_s)
        why = [f"taint {key}" for key in sorted({one.key for one in state.taints if one.effect in KEEPS_AWAY})]
        ceiling = Ceiling.of(self._limits, prod=False, daemonset=False)
        if ceiling is None or state.load is None or state.expected is None:
            return why
        found = judge_age(now.wall_s - state.load.measured_s, self._limits)
        if found is None:
            percents = judge_load(ceiling, {}, state.expected, state.allocatable).usage_percent
            why += [f"{name} in use" for name, percent in percents.items() if percent > ceiling.percents[name]]
        elif not found.fits:
            why.append("figures too old")
        return why

    def left(self, looking: Looking, state: NodeState) -> NodeLeft:
        """Return what is left of a node after other pods that were accepted for it and have not appeared there yet."""
        held = self._reservations.on(state.name)
        if not held or (len(held) == 1 and looking.pod.seen.uid in held):
            return NodeLeft(state.requested, state.expected, state.machine)
        requested, expected, bound = state.requested, state.expected, list[BindablePod]()
        for uid, ask in held.items():
            if uid == looking.pod.seen.uid:
                continue
            if (bindable := ask.bindable) is not None:
                bound.append(bindable)
            requested = together(requested, ask.reclaimed)
            if expected is not None:
                coming = self.view.estimate(ask)
                prod = together(expected.prod, coming) if ask.prod else expected.prod
                expected = ExpectedUse(together(expected.everything, coming), prod)
        machine = state.machine
        if machine is not None and looking.pod.seen.ask.bindable is not None:
            machine = with_coming(machine, BINDING, bound)
        return NodeLeft(requested, expected, machine)

    def _verdict(self, looking: Looking, state: NodeState, now: Now) -> JudgedNode:
        pod = looking.pod
        away = keeping_away(state.taints, pod.seen.ask.qos, pod.tolerations) if state.taints else ()
        if away:
            # Evicting pods does not remove a taint.
            why = f"CNR taint {away[0].key} is not tolerated"
            return JudgedNode(NodeStanding(False, why, unresolvable=True), "cnr_taint", {"key": away[0].key})
        left = self.left(looking, state)
        # Without any offer that is known the Node's own amounts speak, which the scheduler has looked at.
        if looking.asks_reclaimed and state.offered is not None:
            lacking = insufficient(looking.reclaimed, state.offered, left.requested)
            if lacking:
                return _lacking(lacking, looking.reclaimed, state.offered, left.requested)
        if state.overcommitted is not None and (found := self._bound(looking, state.overcommitted, state.name)):
            return found
        bindable = looking.pod.seen.ask.bindable
        if bindable is not None and left.machine is not None and not numa_fit(bindable, BINDING, left.machine).fits:
            why = f"no NUMA node has room for it, by {left.machine.topology_policy}"
            return JudgedNode(NodeStanding(False, why), "numa_fit", {"policy": left.machine.topology_policy})
        return self._load_verdict(looking, state, left.expected, now)

    def _bound(self, looking: Looking, node: OvercommittedNode, name: str) -> JudgedNode | None:
        """Return why a pod is excluded from a node whose bound CPUs are sold more than once; None if it is not."""
        held = self._reservations.on(name)
        coming = [ask for uid, ask in held.items() if uid != looking.pod.seen.uid and ask.qos != "reclaimed_cores"]
        counted = replace(
            node,
            requested_cpu_millis=node.requested_cpu_millis + sum(ask.cpu_request_millis for ask in coming),
            guaranteed_cpus=node.guaranteed_cpus + sum(ask.own_cpus for ask in coming),
        )
        found = overcommit_fit(looking.pod.seen.ask.cpu_taken, counted)
        if found.reason is None:
            return None
        free, words = found.free_cpu_millis, found.reason.replace("_", " ")
        left = "" if free is None else f", {max(0, free)}m left of what was sold more than once"
        numbers: dict[str, float | str] = {"reason": found.reason, **({} if free is None else {"free_millis": free})}
        return JudgedNode(NodeStanding(False, f"over-committed node: {words}{left}"), "overcommit_fit", numbers)

    def _load_verdict(self, looking: Looking, state: NodeState, expected: ExpectedUse | None, now: Now) -> JudgedNode:
        if looking.ceiling is None or state.load is None or expected is None:
            return FITS
        age_s = now.wall_s - state.load.measured_s
        found = judge_age(age_s, self._limits)
        if found is None:
            found = judge_load(looking.ceiling, looking.estimate, expected, state.allocatable)
        if found.reason is None:
            return FITS
        resource = found.reason.partition(":")[2]
        if not resource:
            why = f"{found.reason}: measured {age_s:.0f} s ago"
            return JudgedNode(NodeStanding(False, why), "metric_expired", {"age_s": round(age_s, 1)})
        percent, most = found.usage_percent[resource], looking.ceiling.percents[resource]
        why = f"{found.reason}: {percent} % with this pod, at most {most} %"
        numbers: dict[str, float | str] = {"resource": resource, "percent": percent, "most_percent": most}
        return JudgedNode(NodeStanding(False, why), "load", numbers)


def _lacking(names: Sequence[str], request: Amounts, offered: Amounts, taken: Amounts) -> JudgedNode:
    left = {name: max(0, offered.get(name, 0) - taken.get(name, 0)) for name in names}
    why = "; ".join(
        f"Insufficient {name}: asks for {request[name]}, {left[name]} of {offered.get(name, 0)} left" for name in names
    )
    first = names[0]
    numbers: dict[str, float | str] = {
        "resource": first,
        "asked": request[first],
        "left": left[first],
        "offered": offered.get(first, 0),
    }
    return JudgedNode(NodeStanding(False, why), "reclaimed_fit", numbers)
