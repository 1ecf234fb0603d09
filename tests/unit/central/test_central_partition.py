"""Central over a whole story in which k of n nodes fall silent, for every k and n up to 20."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from services.central.core.heartbeats.listening import BusProbe
from services.central.core.heartbeats.readiness import Assessment, Heard, Heartbeat, assess, reconcile
from services.central.core.lost_nodes.actions import NodeCase, plan_actions
from services.central.core.lost_nodes.rules import Rules
from services.central.core.lost_nodes.verdict import Evidence, judge
from shared.core.evictions.intents import TokenBucket

RULES = Rules()
STEP_S = 50.0
"""Between two looks; coarser than in service, so that all stories together stay short."""
CUT_S = 100.0
"""When the nodes fall silent; central has listened since 0."""
END_S = 2000.0
MOST = 20


@dataclass
class Cluster:
    """n nodes; the first k fall silent and stay so. What central does to them is done."""

    total: int
    silent: int
    agents_alive: bool
    central_suspect: bool = False
    tainted: set[str] = field(default_factory=set)
    evicted: list[tuple[float, str]] = field(default_factory=list)
    acts: list[float] = field(default_factory=list)

    @property
    def names(self) -> list[str]:
        return [f"n{i:02}" for i in range(self.total)]

    @property
    def lost(self) -> set[str]:
        return set(self.names[: self.silent])

    def evidence(self, node: str, assessment: Assessment, now_s: float) -> Evidence:
        dead = node in self.lost and not self.agents_alive and now_s >= CUT_S
        return Evidence(
            bus_well=not assessment.bus_suspect,
            silent_s=assessment.nodes[node].silent_s,
            api_age_s=0.0,
            agent_ready=not dead,
            agent_not_ready_s=now_s - CUT_S if dead else 0.0,
            node_stale=False,
        )

    def play(self, step_s: float = STEP_S) -> "Cluster":
        ledger: dict[str, Heartbeat] = {}
        assessment, bucket = Assessment(), TokenBucket(1, 0.0)
        reconcile(ledger, self.names, 0.0)
        for now_s in _moments(step_s):
            for node in self.names:
                if node not in self.lost or now_s < CUT_S:
                    ledger[node] = Heartbeat(now_s, ready=True, failing=())
            hearing = not (self.central_suspect and now_s >= CUT_S)
            probe = BusProbe(now_s if hearing else CUT_S, 0.0)
            assessment = assess(Heard(ledger, probe), assessment, now_s, RULES)
            cases = [
                NodeCase(
                    node,
                    judge(self.evidence(node, assessment, now_s), RULES),
                    tainted=node in self.tainted,
                    has_reclaimed_pods=node not in {name for _, name in self.evicted},
                )
                for node in self.names
            ]
            planned, bucket = plan_actions(cases, assessment.guards, bucket, now_s, RULES)
            for one in planned:
                if one.objection:
                    continue
                self.acts.append(now_s)
                if one.action == "taint":
                    self.tainted.add(one.node)
                elif one.action == "evict":
                    assert one.node in self.tainted
                    self.evicted.append((now_s, one.node))
        return self


def _moments(step_s: float) -> Iterator[float]:
    now_s = 0.0
    while now_s < END_S:
        now_s += step_s
        yield now_s


ALL = [(silent, total) for total in range(1, MOST + 1) for silent in range(total + 1)]


def allowed(silent: int, total: int) -> bool:
    return 0 < silent < total and silent <= max(1, total // 5)


@pytest.mark.parametrize("central_suspect", [False, True], ids=["nodes cut off", "central cut off"])
def test_a_partition_never_evicts_while_agents_live(central_suspect: bool) -> None:
    for silent, total in ALL:
        cluster = Cluster(total, silent, agents_alive=True, central_suspect=central_suspect).play()
        assert cluster.evicted == [], (silent, total)
        assert cluster.tainted <= cluster.lost
        assert len(cluster.tainted) <= max(1, total // 5)


def test_dead_agents_cost_only_their_own_nodes_their_pods_and_never_too_many_at_a_time() -> None:
    for silent, total in ALL:
        cluster = Cluster(total, silent, agents_alive=False).play()
        gone = [node for _, node in cluster.evicted]
        assert set(gone) == (cluster.lost if allowed(silent, total) else set()), (silent, total)
        assert len(gone) == len(set(gone))
        assert len(gone) <= max(1, total // 5)
        assert all(at_s > CUT_S + RULES.evict_s for at_s, _ in cluster.evicted)


def test_dead_agents_are_acted_on_at_the_pace() -> None:
    cluster = Cluster(20, 4, agents_alive=False).play(step_s=1.0)
    assert len(cluster.evicted) == 4
    for first, start_s in enumerate(cluster.acts):
        for number, end_s in enumerate(cluster.acts[first:], start=1):
            assert number <= 1 + RULES.actions_per_s * (end_s - start_s)


def test_dead_agents_while_central_is_cut_off_wait() -> None:
    for silent, total in ((1, 1), (1, 2), (1, 5), (4, 20), (20, 20)):
        assert not Cluster(total, silent, agents_alive=False, central_suspect=True).play().acts
