"""Budgets of node, namespace and owner: never more than the limit in any window, whatever happens in between."""

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from evictor_world import RECLAIMED, MakeNode, Node, pod, short_of_memory
from fixture_types import Virtual
from present import present

from services.evictor.core.arbiter.budgets import Account, Budget, account
from services.evictor.settings import EvictorSettings, read
from shared.adapters.ledger import upkeep as ledger_upkeep
from shared.contracts.pod import Pod
from shared.core.evictions.intents import Spent
from shared.errors import BadConfig

NODE, NAMESPACE, OWNER = Budget("node", 6, 100), Budget("namespace", 4, 80), Budget("owner", 2, 60)
BUDGETS = (NODE, NAMESPACE, OWNER)
JOB = "Job/sort"


def spent(at_s: float | None = 0.0, namespace: str = "default", owner: str | None = None) -> Spent:
    return Spent("enforce", namespace, owner, at_s)


@pytest.mark.parametrize(
    ("budget", "history", "now_s", "of", "guard"),
    [
        pytest.param(NODE, [spent()] * 5, 99, pod("p"), None, id="one is left"),
        pytest.param(NODE, [spent()] * 6, 99.9, pod("p"), "node_budget", id="used up"),
        pytest.param(NODE, [spent()] * 6, 100, pod("p"), None, id="a window later"),
        pytest.param(NODE, [spent(None)] * 6, 1e6, pod("p"), "node_budget", id="what is not over counts for ever"),
        pytest.param(NODE, [spent(5e5)] * 6, 99, pod("p"), "node_budget", id="the machine has started anew"),
        pytest.param(NODE, [spent(5e5)] * 6, 100, pod("p"), None, id="and has been up for a window"),
        pytest.param(NAMESPACE, [spent(namespace="a")] * 4, 9, pod("p", namespace="b"), None, id="another namespace"),
        pytest.param(
            NAMESPACE, [spent(namespace="a")] * 4, 9, pod("p", namespace="a"), "namespace_budget", id="this namespace"
        ),
        pytest.param(OWNER, [spent(owner="default/Job/sort")] * 2, 9, pod("p", owner=JOB), "owner_budget", id="owner"),
        pytest.param(OWNER, [spent(owner="default/Job/sort")] * 2, 9, pod("p"), None, id="a pod that stands alone"),
        pytest.param(
            OWNER,
            [spent(owner="a/Job/sort")] * 2,
            9,
            pod("p", owner=JOB),
            None,
            id="an owner of the same name elsewhere",
        ),
        pytest.param(Budget("node", 0, 1), [], 0, pod("p"), "node_budget", id="a limit of 0 allows none"),
    ],
)
def test_a_budget_says_no_when_it_is_used_up(
    budget: Budget, history: list[Spent], now_s: float, of: Pod, guard: str
) -> None:
    over = account([budget], history, now_s).overdraft(of)
    assert (over.guard if over else None) == guard


@pytest.mark.parametrize(
    ("evicted", "staying", "allowed"), [(0, 1, True), (0, 4, True), (1, 3, True), (2, 2, False), (1, 2, False)]
)
def test_an_owners_share_counts_the_evicted_and_always_allows_one(evicted: int, staying: int, allowed: bool) -> None:
    half = Budget("owner", 10, 60, share=0.5)
    history = [spent(owner="default/Job/sort")] * evicted
    left = account([half], history, 1.0, {"default/Job/sort": staying})
    assert (left.overdraft(pod("p", owner=JOB)) is None) == allowed


def test_a_pod_that_goes_counts_once_in_its_owners_share() -> None:
    """A half of three is one: who goes must be among the evicted, and no longer among those that stay."""
    one = pod("p", owner=JOB)
    before = account([Budget("owner", 10, 60, share=0.5)], [], 0.0, {"default/Job/sort": 3})
    assert before.overdraft(one) is None
    assert before.after(pod("alone")).overdraft(one) is None
    assert present(before.after(one).overdraft(one)).says.startswith("1 of 1 evictions")


def test_pods_that_stand_alone_share_no_owners_budget() -> None:
    alone = account([Budget("owner", 1, 60)], [spent(owner=None)] * 3, 1.0)
    assert alone.after(pod("p")).after(pod("q")).overdraft(pod("r")) is None
    assert account([Budget("owner", 0, 60)], [], 1.0).overdraft(pod("p")) is None


def test_an_owners_share_is_bounded_by_the_limit() -> None:
    assert [Budget("owner", 2, 60, share=0.5).bound(0, staying) for staying in (1, 4, 100)] == [1, 2, 2]


def test_a_refusal_says_used_bound_window_and_when_again() -> None:
    history = [spent(0.0, owner="default/Job/sort"), spent(10.0, owner="default/Job/sort")]
    over = present(account(BUDGETS, history, 20.0).overdraft(pod("p", owner=JOB)))
    assert over.says == ("2 of 2 evictions of owner default/Job/sort in 60 s are used up; the next may begin in 40 s")
    over = present(account([replace(OWNER, limit=1)], history, 20.0).overdraft(pod("p", owner=JOB)))
    assert over.says.endswith("in 50 s"), "both have to be over for one to be left"
    assert "allows none" in present(account([Budget("node", 0, 1)], [], 0).overdraft(pod("p"))).says


def test_one_more_in_the_same_round_counts_at_once() -> None:
    left = account(BUDGETS, [], 0.0)
    for _ in range(2):
        assert left.overdraft(pod("p", owner=JOB)) is None
        left = left.after(pod("p", owner=JOB))
    assert present(left.overdraft(pod("p", owner=JOB))).guard == "owner_budget"
    assert left.overdraft(pod("q")) is None
    assert Account().overdraft(pod("p")) is None


class World:
    """Real time, a clock that starts anew with the machine, and what a ledger would hold."""

    def __init__(self, seed: int) -> None:
        self.roll = random.Random(seed)
        self.real_s, self.booted_s = 1000.0, 0.0
        self.history: list[Spent] = []
        self.done: list[tuple[float, Pod]] = []
        self.pods = [
            pod(f"p{i}", namespace=f"n{i % 3}", owner=None if i % 4 == 0 else f"Job/j{i % 2}") for i in range(12)
        ]

    @property
    def now_s(self) -> float:
        return self.real_s - self.booted_s

    def step(self) -> None:
        what = self.roll.random()
        if what < 0.4:
            self.real_s += self.roll.choice([0.0, 0.5, 3.0, 9.0, 30.0])
        elif what < 0.404:
            self.booted_s = self.real_s + self.roll.choice([0.0, 5.0])
            self.real_s = self.booted_s + self.roll.choice([0.0, 1.0, 20.0, 500.0])
        elif what < 0.8:
            of = self.roll.choice(self.pods)
            if account(BUDGETS, self.history, self.now_s).overdraft(of) is None:
                self.history.append(Spent("enforce", of.namespace, of.owner_key, None))
                self.done.append((float("inf"), of))
        elif under_way := [i for i, one in enumerate(self.history) if one.at_s is None]:
            i = self.roll.choice(under_way)
            if self.roll.random() < 0.3:  # cancelled: nobody was evicted
                del self.history[i], self.done[i]
            else:
                self.history[i] = replace(self.history[i], at_s=self.now_s)
                self.done[i] = (self.real_s, self.done[i][1])


@pytest.mark.parametrize("seed", range(5))
def test_over_any_time_restarts_and_requests_no_window_holds_more_than_the_limit(seed: int) -> None:
    """What counts is when the eviction came about, in real time, which nobody in the node can read."""
    world = World(seed)
    for _ in range(6_000):
        world.step()
    ended = [(at_s, of) for at_s, of in world.done if at_s < float("inf")]
    assert len(ended) > 100
    keys: dict[Budget, Callable[[Pod], str | None]] = {
        NODE: lambda of: "",
        NAMESPACE: lambda of: of.namespace,
        OWNER: lambda of: of.owner_key,
    }
    fullest = dict.fromkeys(BUDGETS, 0)
    for budget, key in keys.items():
        for whose in {key(of) for _, of in ended} - {None}:
            moments = sorted(at_s for at_s, of in ended if key(of) == whose)
            for start_s in moments:
                inside = sum(start_s <= at_s < start_s + budget.window_s for at_s in moments)
                assert inside <= budget.limit
                fullest[budget] = max(fullest[budget], inside)
    assert all(fullest[budget] == budget.limit for budget in (NAMESPACE, OWNER)), "the limit is never reached: no test"


def test_the_ledger_counts_for_as_long_as_the_longest_window_that_can_be_set() -> None:
    with pytest.raises(BadConfig, match="window_s"):
        read({"budgets": {"node": {"window_s": ledger_upkeep.KEEP_SPENT_S + 1}}})
    settings, _ = read({"budgets": {"owner": {"window_s": ledger_upkeep.KEEP_SPENT_S}}})
    assert [b.limit for b in settings.budgets.in_order] == [b.limit for b in EvictorSettings().budgets.in_order]


LIMITS = {"cooling_s": 0, "max_without_relief": 100, "evictions_per_minute": 600}


def batch(count: int, **fields: Any) -> list[Pod]:
    return [pod(f"batch-{i:02}", **fields) for i in range(count)]


def test_an_owner_out_of_budget_is_passed_over_and_no_tenant_goes_for_it(node: MakeNode, virtual: Virtual) -> None:
    section = LIMITS | {"budgets": {"owner": {"limit": 2, "window_s": 3600}}}

    async def main() -> None:
        crowd = [*batch(5, owner=JOB), pod("zz-alone"), pod("web", "shared_cores")]
        world = await short_of_memory(node(**section), *crowd)
        async with world.life():
            await world.tick(40)
            state = world.state()
        names = [bytes.fromhex(uid).decode() for uid in world.evictor.kills]
        assert names == ["batch-00", "batch-01", "zz-alone"]
        (refused,) = [r for r in state["refusals"] if r["pod"] == "default/batch-02"]
        assert refused["guard"] == "owner_budget"
        assert "2 of 2 evictions of owner default/Job/sort in 3600 s" in refused["why"]

    virtual(main())


def test_budgets_hold_across_restarts_of_the_evictor_and_of_the_machine(node: MakeNode, virtual: Virtual) -> None:
    section = LIMITS | {"budgets": {"node": {"limit": 2, "window_s": 300}}}
    kills: list[Any] = []

    async def boot(seconds: int) -> None:
        world: Node = await short_of_memory(node(**section), *batch(20)[len(kills) :])
        for _ in range(2):
            async with world.life():
                await world.tick(seconds // 2)
        kills.extend(world.evictor.kills)

    virtual(boot(100))
    assert len(kills) == 2
    virtual(boot(100))
    assert len(kills) == 2, "100 s of the first life and 100 s of this one may be all that has passed"
    virtual(boot(290))
    assert len(kills) == 4, "with the 100 s that the clock had shown when it was last written, the window is over"


def test_dry_runs_have_budgets_of_their_own(node: MakeNode, virtual: Virtual) -> None:
    section = LIMITS | {
        "budgets": {"node": {"limit": 2, "window_s": 3600}},
        "plugins": {"reclaimed_overcommit": {"mode": "dry-run"}},
    }

    async def main() -> None:
        world = await short_of_memory(node(**section), *batch(9, cpu=9_000))
        world.offered_millis, world.free_bytes = 1_000, 50 << 30
        async with world.life():
            await world.tick(40)
            assert world.evictor.kills == []
            rehearsed = [c for c in world.evictor.calls if c[0] == "dry-run"]
            assert len(rehearsed) == 2, "it shows what the budgets would let through"
            world.free_bytes = 0
            await world.tick(40)
        assert len(world.evictor.kills) == 2, "what was only rehearsed has used up nothing"

    virtual(main())


def test_an_eviction_that_has_only_been_written_counts_already(node: MakeNode, virtual: Virtual) -> None:
    section = LIMITS | {"budgets": {"node": {"limit": 1, "window_s": 3600}}, "intent_deadline_s": 600}

    async def main() -> None:
        world = await short_of_memory(node(**section), *batch(3, cpu=9_000))
        world.evictor.blind = True  # nobody finds out where the pod stands: the intent stays where it is
        async with world.life():
            await world.tick(5)
            world.offered_millis = 1_000
            await world.tick(5)
            guards = {r["guard"] for r in world.state()["refusals"] if r["plugin"] == RECLAIMED and r["pod"]}
            assert len(world.state()["live"]) == 1
        assert guards == {"live_intent", "node_budget"}

    virtual(main())


def test_a_rehearsal_takes_no_pod_away_from_what_is_enforced(node: MakeNode, virtual: Virtual) -> None:
    section = LIMITS | {"plugins": {"memory_pressure": {"mode": "dry-run"}}}

    async def main() -> None:
        world = await short_of_memory(node(**section), pod("batch", cpu=9_000))
        world.offered_millis = 1_000
        async with world.life():
            await world.tick(2)
        assert world.evictor.kills == [pod("batch").uid]
        assert {event.plugin for event in world.events} == {RECLAIMED}

    virtual(main())
