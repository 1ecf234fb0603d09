"""A thousand evictions, of pods that are made anew under their names meanwhile: no budget is spent for nothing.

The API server and its controllers are real. Played are who makes the pods anew, as a StatefulSet does, and the kubelet.
"""

import asyncio
import random
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, get_args

import pytest
from kube_rig.cluster import Cluster
from paper_node import AT_ONCE, PaperNode, make_namespace, remove_namespace

from shared.adapters.clock import SystemClock
from shared.adapters.kube.client import Document, Kube, KubeError
from shared.adapters.kube.evictor import KubeEvictor
from shared.adapters.kube.watch import Collection, Mirror, listed
from shared.contracts.pod import Pod
from shared.core.pods.kube_pod import pod_of
from shared.ports import Outcome, Standing

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(300)]

NAMESPACE, NODE, HAND = "thousand", "thousand-1", "test"
EVICTIONS, ROUNDS, NAMES = 1000, 5, 40
"""Each name has its own caller: so many go on at once."""
GUARDS, ALLOWED = 4, 8
"""Budgets, each for as many of the names, and how many of them it lets go; of one, the server does one at a time."""
UNGUARDED = "nobody"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
BUDGETS = f"/apis/policy/v1/namespaces/{NAMESPACE}/poddisruptionbudgets"
END_S, LATEST_S = 1.0, 0.02
"""Seconds that the kubelet takes to end a pod, and until when after our call somebody else asks for it."""
OVERTAKEN = 20
CONFLICT = 409
SETTLE_LIMIT_S, LOOK_S = 20.0, 0.1
"""A slot that was spent for nothing stays spent for 120 s."""
Moment = Literal[
    "never",
    "before the rehearsal",
    "between rehearsal and call",
    "while the call is made",
    "while our look is answered",
]
"""When the pod is made anew, after it has been chosen."""


@dataclass(frozen=True, slots=True)
class Called:
    """One call that was no rehearsal; times are those of the wall."""

    name: str
    moment: Moment
    outcome: Outcome
    detail: str
    sent: bool
    """Whether the server was asked; False where the look before it said enough."""
    began_s: float
    ended_s: float

    @property
    def spends(self) -> bool:
        """Whether it may cost a slot: it was done, or it was right when it came and the server was too slow for it.

        A server that is asked to evict many pods of one budget lets each wait for half a second and more, and does not
        look again at the pod meanwhile: it finds its successor then, or nobody. The caller can do nothing about that.
        """
        missed = self.outcome == "gone" or "the UID in the precondition" in self.detail
        return self.outcome == "accepted" or (self.sent and self.moment == "while the call is made" and missed)

    def at(self, name: str, second: str) -> bool:
        """Whether it was being made at a time as objects tell it, which is without fractions."""
        return self.name == name and self.began_s - 1 < datetime.fromisoformat(second).timestamp() <= self.ended_s


@dataclass
class Seen:
    """What became of it all; UIDs in the sets."""

    calls: list[Called] = field(default_factory=list)
    accepted: set[str] = field(default_factory=set)
    obeyed: set[str] = field(default_factory=set)
    """The budget had no room, and they ran on."""
    replaced: set[str] = field(default_factory=set)
    """Ended by the test itself, to be made anew."""
    called: set[str] = field(default_factory=set)
    """Of whom an eviction was asked for, whatever was answered."""
    ended: set[str] = field(default_factory=set)
    """Seen to end with grace, whoever has asked for it."""
    wrong: set[str] = field(default_factory=set)
    """Seen to end when nobody had asked for it yet."""
    spent: set[tuple[str, str]] = field(default_factory=set)
    """Slots of the budget, by name of the pod and time."""
    settled: list[tuple[int, dict[str, str]]] = field(default_factory=list)
    """After each round: what the budgets allow, and whose end they still wait for."""
    overtaken: list[tuple[Outcome, Standing]] = field(default_factory=list)
    """What we were told, and how the pod's successor does."""
    took_s: float = 0.0

    @property
    def outcomes(self) -> Counter[tuple[Moment, Outcome]]:
        """How often what was answered when."""
        return Counter((call.moment, call.outcome) for call in self.calls)

    @property
    def burnt(self) -> list[tuple[str, str]]:
        """Slots that no call can account for."""
        return [slot for slot in self.spent if not any(call.spends and call.at(*slot) for call in self.calls)]

    @property
    def late(self) -> list[Called]:
        """Calls for which the server was too slow."""
        return [call for call in self.calls if call.spends and call.outcome != "accepted"]


class LateKube(Kube):
    """An answer may be late, as if this process had stood still, and somebody acts meanwhile."""

    meanwhile: dict[str, Callable[[], Awaitable[None]]]
    sent: Counter[str]
    """How often an object was made at a path."""

    async def get(self, path: str, **query: object) -> Document:
        found = await super().get(path, **query)
        if (act := self.meanwhile.pop(path, None)) is not None:
            await act()
        return found

    async def create(self, path: str, body: Mapping[str, Any], *, manager: str, **query: object) -> Document:
        if (act := self.meanwhile.pop(path, None)) is not None:
            await act()
        self.sent[path] += 1
        return await super().create(path, body, manager=manager, **query)


class Played:
    """Pods by name, who makes them anew, and who evicts them."""

    def __init__(self, kube: LateKube) -> None:
        self._kube, self._evictor, self.seen = kube, KubeEvictor(kube), Seen()
        self._kube.meanwhile, self._kube.sent = {}, Counter()
        self._pods = Mirror(Collection(kube, PODS), self._keep, SystemClock())
        self._budgets = Mirror(Collection(kube, BUDGETS), self._keep_budget, SystemClock())

    def _keep(self, document: Mapping[str, Any]) -> Pod | None:
        uid = document["metadata"]["uid"]
        if document["metadata"].get("deletionTimestamp"):
            self.seen.ended.add(uid)
            if uid not in self.seen.called | self.seen.replaced:
                self.seen.wrong.add(uid)
        return pod_of(document)

    def _keep_budget(self, document: Mapping[str, Any]) -> Document:
        status: Document = document.get("status") or {}
        self.seen.spent |= set((status.get("disruptedPods") or {}).items())
        return status

    async def play(self) -> Seen:
        """From nothing to nothing."""
        node = PaperNode(self._kube, NODE, NAMESPACE, {"cpu": "48", "memory": "64Gi", "pods": "110"})
        try:
            await make_namespace(self._kube, NAMESPACE)
            await node.register()
            beside = [asyncio.create_task(task) for task in (node.breathe(), self._pods.run(), self._budgets.run())]
            for mirror in (self._pods, self._budgets):
                await listed(mirror, SystemClock(), timeout_s=SETTLE_LIMIT_S)
            await self._evict_all()
            for task in beside:
                task.cancel()
            await asyncio.gather(*beside, return_exceptions=True)
        finally:
            await remove_namespace(self._kube, NAMESPACE)
            await node.remove()
            await self._kube.close()
        return self.seen

    async def _evict_all(self) -> None:
        names, began_s = [f"set-{number}" for number in range(NAMES)], time.monotonic()
        await asyncio.gather(*map(self._make, names))
        for guard in {guard_of(name) for name in names}:
            held = {"minAvailable": NAMES // GUARDS - ALLOWED, "selector": {"matchLabels": {"guard": guard}}}
            await self._kube.create(BUDGETS, {"metadata": {"name": guard}, "spec": held}, manager=HAND)
        await self._settle()
        for _ in range(ROUNDS):
            await asyncio.gather(*(self._work(name, EVICTIONS // ROUNDS // NAMES) for name in names))
            self.seen.settled.append(await self._settle())
        self.seen.took_s = time.monotonic() - began_s
        await asyncio.gather(*(self._overtake(f"free-{number}") for number in range(OVERTAKEN)))

    async def _overtake(self, name: str) -> None:
        """A pod without a budget is made anew between our look and our call."""
        pod, successors = await self._make(name), list[Pod]()

        async def replace() -> None:
            self.seen.replaced.add(pod.uid)
            await self._delete(pod, AT_ONCE)
            successors.append(await self._make(name))

        self._kube.meanwhile[f"{PODS}/{name}/eviction"] = replace
        told = await self._evictor.evict(pod, grace_s=1)
        self.seen.overtaken.append((told.outcome, await self._evictor.lookup(successors[0])))

    async def _work(self, name: str, count: int) -> None:
        """Choose the pod of this name again and again, by a list that may be old."""
        rng = random.Random(f"{name} {len(self.seen.settled)}")
        for _ in range(count):
            while (pod := next((one for one in self._pods.objects.values() if one.name == name), None)) is None:
                await asyncio.sleep(LOOK_S)
            await self._evict(pod, rng.choice(get_args(Moment)), rng.uniform(0, LATEST_S))

    async def _evict(self, pod: Pod, moment: Moment, delay_s: float) -> None:
        """Rehearse and call as the service does, while the pod is made anew."""
        path = f"{PODS}/{pod.name}"
        if moment == "before the rehearsal":
            await self._replace(pod)
        await self._evictor.evict(pod, grace_s=1, dry_run=True)
        if moment == "between rehearsal and call":
            await self._replace(pod)
        elif moment == "while our look is answered":
            self._kube.meanwhile[path] = lambda: self._replace(pod)
        async with asyncio.TaskGroup() as tasks:
            if moment == "while the call is made":
                tasks.create_task(self._replace(pod, delay_s))
            self.seen.called.add(pod.uid)
            before, began_s = self._kube.sent[f"{path}/eviction"], time.time()
            result = await self._evictor.evict(pod, grace_s=1)
            sent = self._kube.sent[f"{path}/eviction"] > before
            called = Called(pod.name, moment, result.outcome, result.detail, sent, began_s, time.time())
            self.seen.calls.append(called)
        self._kube.meanwhile.pop(path, None)
        if result.outcome == "accepted":
            self.seen.accepted.add(pod.uid)
        elif result.outcome == "wait" and moment == "never" and await self._evictor.lookup(pod) == "running":
            self.seen.obeyed.add(pod.uid)
        if result.outcome == "accepted" and pod.uid not in self.seen.replaced:
            await self._end(pod)

    async def _replace(self, pod: Pod, delay_s: float = 0.0) -> None:
        """Somebody deletes the pod, and it is made anew."""
        await asyncio.sleep(delay_s)
        self.seen.replaced.add(pod.uid)
        try:
            await self._delete(pod, {"gracePeriodSeconds": 1})
        except KubeError as error:
            # It was chosen by a list that was old: it has been made anew before.
            if error.status != CONFLICT:
                raise
            return
        await self._end(pod)

    async def _end(self, pod: Pod) -> None:
        """The kubelet ends the pod, then another one of its name is made."""
        await asyncio.sleep(END_S)
        await self._delete(pod, AT_ONCE)
        await self._make(pod.name)

    async def _delete(self, pod: Pod, how: Document) -> None:
        await self._kube.delete(f"{PODS}/{pod.name}", how | {"preconditions": {"uid": pod.uid}})

    async def _make(self, name: str) -> Pod:
        spec = {"nodeName": NODE, "containers": [{"name": "main", "image": "none.example/none"}]}
        wanted = {"metadata": {"name": name, "labels": {"guard": guard_of(name)}}, "spec": spec}
        await self._kube.create(PODS, wanted, manager=HAND)
        status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
        pod = pod_of(await self._kube.merge(f"{PODS}/{name}/status", {"status": status}, manager=HAND))
        assert pod is not None
        return pod

    async def _settle(self) -> tuple[int, dict[str, str]]:
        """What the budgets say once all pods are there, or when they should have said it long ago."""
        end = time.monotonic() + SETTLE_LIMIT_S
        while True:
            told = tuple(self._budgets.objects.values())
            waiting = {name: since for one in told for name, since in (one.get("disruptedPods") or {}).items()}
            found = sum(one.get("disruptionsAllowed", 0) for one in told), waiting
            if found == (GUARDS * ALLOWED, {}) or time.monotonic() > end:
                return found
            await asyncio.sleep(LOOK_S)


def guard_of(name: str) -> str:
    """Whose budget a pod is in."""
    kind, number = name.rsplit("-", 1)
    return f"guard-{int(number) % GUARDS}" if kind == "set" else UNGUARDED


@pytest.fixture(scope="module")
def seen(cluster: Cluster) -> Seen:
    """All evictions."""

    async def play() -> Seen:
        return await Played(LateKube(cluster.admin)).play()

    return asyncio.run(play())


def test_every_slot_that_was_spent_is_that_of_an_eviction(seen: Seen) -> None:
    assert seen.spent
    assert seen.burnt == [], [call for slot in seen.burnt for call in seen.calls if call.at(*slot)]


def test_nothing_is_left_of_it_in_the_budget(seen: Seen) -> None:
    late = {call.name for call in seen.late}
    assert [allowed + len(waiting) for allowed, waiting in seen.settled] == [GUARDS * ALLOWED] * ROUNDS
    assert {name for _, waiting in seen.settled for name in waiting} <= late


def test_nobody_ends_who_was_not_to(seen: Seen) -> None:
    assert seen.wrong == set()


def test_a_successor_that_comes_between_look_and_call_lives(seen: Seen) -> None:
    """Too late for us to see: the server refuses. That costs a budget a slot, so this one has none."""
    assert seen.overtaken == [("unknown", "running")] * OVERTAKEN


def test_everybody_ends_whose_eviction_was_accepted(seen: Seen) -> None:
    assert seen.accepted <= seen.ended


def test_a_pod_that_is_made_anew_before_the_call_is_gone_for_us(seen: Seen) -> None:
    for moment in ("before the rehearsal", "between rehearsal and call", "while our look is answered"):
        assert {outcome for one, outcome in seen.outcomes if one == moment} == {"gone"}


def test_a_pod_that_is_let_alone_is_evicted_or_waits_for_the_budget_unharmed(seen: Seen) -> None:
    assert {outcome for one, outcome in seen.outcomes if one == "never"} == {"accepted", "wait"}
    assert len(seen.obeyed - seen.accepted) > 0
    assert seen.outcomes["never", "wait"] >= len(seen.obeyed)


def test_how_many_there_were(seen: Seen, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [f"  {moment}: {outcome} {count}" for (moment, outcome), count in sorted(seen.outcomes.items())]
    lines += [
        f"  slots spent {len(seen.spent)}, for nothing {len(seen.burnt)}; overtaken inside the server {len(seen.late)}",
        f"  UIDs whose eviction was accepted {len(seen.accepted)}, wrong UIDs evicted {len(seen.wrong)}",
    ]
    with capsys.disabled():
        print(f"\n{seen.outcomes.total()} evictions in {seen.took_s:.0f} s, {NAMES} at once; a pod was made anew")
        print("\n".join(lines))
    assert seen.outcomes.total() == EVICTIONS
