"""A day of a pool of 100 nodes, played over the rules alone: services' load by the hour, a scheduler, evictions, and
batch work on every node that is free for it.
"""

import math
import random
from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from services.central.core.tide.change import LastChange, NodeChange
from services.central.core.tide.edits import NodeEdit, closing, marked
from services.central.core.tide.entry import EntryStep, Move, entry_step, unwelcome
from services.central.core.tide.marks import BATCH_UNWANTED, SERVICES_UNWANTED
from services.central.core.tide.placement import KEEPS_AWAY, PodToleration, TidePlacement
from services.central.core.tide.plan import PoolView, TidePace, plan_pool
from services.central.core.tide.pool import TidePool, TidePoolSeen, pool_of
from services.central.core.tide.seen import TideNodeSeen, TidePodSeen

NODES, CPUS, POD_CPUS = 100, 16, 4
PASS_S, HOLD_S, DAY_S = 120.0, 600.0, 86400.0
PACE = TidePace(hold_s=HOLD_S, release_s=PASS_S, retry_s=6 * HOLD_S)
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
SERVICE = TidePlacement(tolerations=(PodToleration(BATCH_UNWANTED.key, "Exists", "", ""),))
BATCH = TidePlacement(tolerations=(PodToleration(SERVICES_UNWANTED.key, "Exists", "", ""),))
AMOUNTS = {"cpu": CPUS * 1000, "memory": 64 << 30, "pods": 110}
REQUESTS = {"cpu": POD_CPUS * 1000, "memory": 8 << 30, "pods": 1}


def read_pool() -> TidePoolSeen:
    spec = {"nodeConfigs": {"nodeSelector": {"pool": "green"}, "reserve": {"online": "10%", "offline": "5%"}}}
    return pool_of({"metadata": {"name": "green", "uid": "p"}, "spec": spec})


@dataclass
class Day:
    """The pool as it is at a moment, and what was seen of it."""

    load: random.Random
    seen: TidePoolSeen = field(default_factory=read_pool)
    at_s: float = 0.0
    nodes: dict[str, TideNodeSeen] = field(default_factory=dict)
    pods: dict[str, TidePodSeen] = field(default_factory=dict)
    flips: list[tuple[str, float]] = field(default_factory=list)
    offline: list[int] = field(default_factory=list)
    waited: list[int] = field(default_factory=list)
    _made: int = 0

    @property
    def now(self) -> datetime:
        return BEGIN + timedelta(seconds=self.at_s)

    @property
    def pool(self) -> TidePool:
        assert self.seen.pool is not None
        return self.seen.pool

    def begin(self) -> None:
        for n in range(NODES):
            name = f"n{n:03}"
            self.nodes[name] = TideNodeSeen(name, name, {"pool": "green"}, (), AMOUNTS)

    def wanted(self) -> int:
        """Pods of services: few at four in the morning, most at four in the afternoon, with some noise."""
        tide = 0.5 - 0.5 * math.cos(2 * math.pi * (self.at_s / DAY_S - 4 / 24))
        return int((0.15 + 0.75 * tide) * NODES * CPUS / POD_CPUS) + self.load.randint(-5, 5)

    def make(self, *, online: bool, node: str | None = None) -> None:
        self._made += 1
        key = f"{'s' if online else 'b'}/{self._made:06}"
        placement = SERVICE if online else BATCH
        self.pods[key] = TidePodSeen(key, key, node, online, REQUESTS, placement)

    def scale(self) -> None:
        services = [key for key, pod in self.pods.items() if pod.online]
        for _ in range(self.wanted() - len(services)):
            self.make(online=True)
        for key in self.load.sample(services, max(0, len(services) - self.wanted())):
            del self.pods[key]

    def schedule(self) -> None:
        used = Counter[str | None](pod.node for pod in self.pods.values() if pod.node)
        for key, pod in sorted(self.pods.items()):
            if pod.node is None:
                free = (name for name, node in self.nodes.items() if used[name] < CPUS // POD_CPUS and opens(node, pod))
                target = next(free, None)
                self.pods[key] = replace(pod, node=target, unschedulable=target is None)
                used[target] += target is not None
        for name, node in self.nodes.items():
            if all(taint.key == SERVICES_UNWANTED.key for taint in node.taints) and node.taints:
                for _ in range(CPUS // POD_CPUS - used[name]):
                    self.make(online=False, node=name)

    def step(self) -> None:
        view = PoolView(self.seen.marks, self.pool, list(self.nodes.values()), list(self.pods.values()))
        plan = plan_pool(view, self.now, PACE)
        begun = {move.node for move in plan.moves if self.nodes[move.node].change is None}
        if plan.stuck and not any(move.node in begun and move.role == "tide_online" for move in plan.moves):
            assert not self.could_flip(), f"at {self.at_s}: {plan.stuck} wait, and {self.could_flip()} could come"
        for move in plan.moves:
            self.do(move)
        self.waited.append(len(plan.waiting))
        self.offline.append(sum(role in ("tide_offline", "offline_reserve") for role in plan.roles.values()))

    def could_flip(self) -> list[str]:
        """Batch nodes that stand still and are not held; any of them has room for any pod of this day."""
        labels = {name: node.labels for name, node in self.nodes.items() if node.change is None}
        return [
            name
            for name, one in labels.items()
            if one.get("tide.katalyst.kubewharf.io/tide") == "true"
            and one["tide.katalyst.kubewharf.io/node-type"] == "offline"
            and ((last := self.nodes[name].last) is None or (self.now - last.at).total_seconds() >= HOLD_S)
        ]

    def do(self, move: Move) -> None:
        node, marks = self.nodes[move.node], self.seen.marks
        there = [pod for pod in self.pods.values() if pod.node == move.node]
        leaving = unwelcome(there, move.role, marks)
        step: EntryStep = entry_step(move, node, leaving, self.now, 600.0)
        last = LastChange(pool="green", at=self.now, why=step.why, gave_up=step.what == "give_up")
        match step.what:
            case "close":
                change = NodeChange(pool="green", to=move.role, since=self.now, for_pod=move.for_pod)
                self.write(node, closing(node, change, marks))
            case "evict":
                for key in step.pods:
                    online = self.pods.pop(key).online
                    if online:
                        self.make(online=True)
            case "enter":
                assert not leaving, "a taint never ends a pod on this day"
                flipped = move.before is not None and move.changes_side
                self.write(node, marked(node, move.role, marks, last if flipped else node.last))
                if flipped:
                    self.flips.append((move.node, self.at_s))
            case "give_up":
                assert move.before != "other"
                self.write(node, marked(node, move.before, marks, last))

    def write(self, node: TideNodeSeen, edit: NodeEdit) -> None:
        self.nodes[node.name] = replace(
            node, labels=edit.labels, taints=edit.taints, change=edit.change, last=edit.last
        )

    def play(self) -> None:
        self.begin()
        while self.at_s < DAY_S:
            self.scale()
            self.schedule()
            self.step()
            for pod in self.pods.values():
                if pod.online and pod.node:
                    node = self.nodes[pod.node]
                    assert not any(t.effect == "NoExecute" and not pod.placement.tolerates(t) for t in node.taints)
            self.at_s += PASS_S


def opens(node: TideNodeSeen, pod: TidePodSeen) -> bool:
    return all(taint.effect not in KEEPS_AWAY or pod.placement.tolerates(taint) for taint in node.taints)


@pytest.mark.parametrize("seed", [1, 2])
def test_a_day_of_a_hundred_nodes(seed: int) -> None:
    day = Day(random.Random(seed))
    day.play()
    by_node: dict[str, list[float]] = {}
    for name, at_s in day.flips:
        by_node.setdefault(name, []).append(at_s)
    # No node flaps: each stays for its hold time at least.
    assert all(after - before >= HOLD_S for times in by_node.values() for before, after in pairwise(times))
    # Batch work has many whole nodes by night, and few at the height of the day.
    assert max(day.offline) > 50
    assert min(day.offline[int(len(day.offline) * 0.6) :]) < 30
    assert len(day.flips) > 60
