"""Eviction tasks worked off one after the other: the kinds `pending_release` and `multi_task_release`."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from services.evictor.whatif.fields import Int64
from shared.whatif.decisions import Answer, Question, decision

Credit = Literal["used", "request"]
"""What a victim counts for: what it uses, or what it requests."""
Amounts = Mapping[Credit, Mapping[str, int]]
MEMORY = "memory"


@dataclass(frozen=True, slots=True)
class EvictTask:
    """So much of each resource should go, from these pods in this order."""

    credit: Credit
    to_release: Mapping[str, int]
    victims: Sequence[str]

    @property
    def resources(self) -> set[str]:
        """Those of which some should go."""
        return {resource for resource, amount in self.to_release.items() if amount > 0}

    def done(self, released: Amounts) -> bool:
        """Whether enough of each resource has gone."""
        return all(self.to_release[r] <= released[self.credit][r] for r in self.resources)


@dataclass(frozen=True, slots=True)
class Outcome:
    """Who was evicted, and what that counts for by credit and resource."""

    newly_evicted: list[str]
    released: dict[Credit, dict[str, int]]


def work_off(tasks: Sequence[EvictTask], pods: Mapping[str, Amounts], gone: Collection[str] = ()) -> Outcome:
    """Evict for each task until enough has gone.

    What a victim frees counts for every task. One that has been evicted before and is still there (`gone`) counts
    where its turn comes. Nobody goes twice, and a victim that is none of `pods` is passed over.
    """
    named: dict[Credit, dict[str, int]] = {task.credit: {} for task in tasks if task.resources}
    for task in tasks:
        named.get(task.credit, {}).update(dict.fromkeys(sorted(task.resources), 0))
    outcome, counted = Outcome([], named), set[str]()
    for task in tasks:
        for name in task.victims:
            if task.done(outcome.released):
                break
            if name in counted or name not in pods:
                continue
            counted.add(name)
            if name not in gone:
                outcome.newly_evicted.append(name)
            for credit, sums in outcome.released.items():
                for resource in sums:
                    sums[resource] += pods[name].get(credit, {}).get(resource, 0)
    return outcome


class PendingVictim(Question):
    """A victim in its turn; with `already_evicted` it is on its way out."""

    name: str
    memory_used_bytes: Int64 | None = None
    already_evicted: bool


class PendingQuestion(Question):
    """What should go, and the victims in order."""

    to_release_bytes: Int64
    victims: list[PendingVictim]


class PendingAnswer(Answer):
    """Who goes besides, and what all of them count for."""

    newly_evicted: list[str]
    counted_release_bytes: int


@decision("pending_release", area="koord_memory_evict", asks=PendingQuestion, answers=PendingAnswer)
def pending_release(question: PendingQuestion) -> PendingAnswer:
    """How far pods already evicted but still present count."""
    victims = question.victims
    task = EvictTask("used", {MEMORY: question.to_release_bytes}, [victim.name for victim in victims])
    pods: dict[str, Amounts] = {v.name: {"used": {MEMORY: v.memory_used_bytes or 0}} for v in reversed(victims)}
    outcome = work_off([task], pods, {victim.name for victim in victims if victim.already_evicted})
    return PendingAnswer(
        newly_evicted=outcome.newly_evicted,
        counted_release_bytes=outcome.released.get("used", {}).get(MEMORY, 0),
    )


class TaskPod(Question):
    """A pod with what it would free by each credit."""

    name: str
    used: dict[str, Int64] = {}
    requests: dict[str, Int64] = {}


class TaskQuestion(Question):
    """One task."""

    credit: Credit
    to_release: dict[str, Int64]
    victims: list[str]


class MultiTaskQuestion(Question):
    """Tasks in their order, and the pods that their victims name."""

    tasks: list[TaskQuestion]
    pods: list[TaskPod]


class MultiTaskAnswer(Answer):
    """Who is evicted, in order, and what that counts for by credit and resource."""

    newly_evicted: list[str]
    released: dict[Credit, dict[str, int]]


@decision("multi_task_release", area="koord_memory_evict", asks=MultiTaskQuestion, answers=MultiTaskAnswer)
def multi_task_release(question: MultiTaskQuestion) -> MultiTaskAnswer:
    """Several eviction tasks over the same pods."""
    outcome = work_off(
        [EvictTask(task.credit, task.to_release, task.victims) for task in question.tasks],
        {pod.name: {"used": pod.used, "request": pod.requests} for pod in question.pods},
    )
    return MultiTaskAnswer(newly_evicted=outcome.newly_evicted, released=outcome.released)
