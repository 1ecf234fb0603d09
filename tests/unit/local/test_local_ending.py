"""An eviction in virtual time: TERM at once, KILL at the deadline and not before, until nobody is left."""

import asyncio
from pathlib import Path
from signal import Signals
from typing import cast

import pytest
from fixture_types import Virtual
from pods_rig import record
from present import present

from shared.adapters.clock import LoopClock
from shared.adapters.host.cgroup import Cgroups
from shared.adapters.local import evictor as local_evictor
from shared.adapters.local.evictor import LocalEvictor
from shared.adapters.local.pods import LocalPods
from shared.contracts.pod import Pod


class Stubborn:
    """A cgroup whose processes ignore TERM; each KILL gets one of them while the others fork no more."""

    def __init__(self, processes: int, clock: LoopClock) -> None:
        self.processes, self.clock = processes, clock
        self.signals: list[tuple[str, float]] = []

    def pids(self, _group: str) -> list[int]:
        return list(range(self.processes))

    def remove(self, _group: str) -> bool:
        return not self.processes

    def term(self, _cgroups: "Stubborn", _group: str, _number: Signals) -> int:
        self.signals.append(("TERM", self.clock.monotonic()))
        return self.processes

    def kill(self, _cgroups: "Stubborn", _group: str) -> int:
        there = self.processes
        if there:
            self.signals.append(("KILL", self.clock.monotonic()))
            self.processes -= 1
        return there


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Stubborn, LocalPods, Pod, LocalEvictor]:
    cgroups = Stubborn(3, LoopClock())
    monkeypatch.setattr(local_evictor, "signal_group", cgroups.term)
    monkeypatch.setattr(local_evictor, "kill_group", cgroups.kill)
    made, store = record("web"), LocalPods(tmp_path)
    store.add(made)
    return cgroups, store, made.pod, LocalEvictor(tmp_path, cast("Cgroups", cgroups), cgroups.clock)


def test_term_at_once_kill_at_the_deadline_and_again_until_nobody_is_left(
    world: tuple[Stubborn, LocalPods, Pod, LocalEvictor], virtual: Virtual
) -> None:
    cgroups, store, pod, evictor = world

    async def work() -> None:
        await evictor.evict(pod, grace_s=30.0)
        await evictor.ended(pod.uid)

    virtual(work())
    names = [name for name, _ in cgroups.signals]
    (_, term_s), (_, first_kill_s), *_ = cgroups.signals
    assert names == ["TERM", "KILL", "KILL", "KILL"]
    assert (term_s, round(first_kill_s, 6)) == (0.0, 30.0)
    assert present(store.get(pod.uid)).status.finished


def test_a_later_wish_for_less_grace_is_heeded_during_the_grace(
    world: tuple[Stubborn, LocalPods, Pod, LocalEvictor], virtual: Virtual
) -> None:
    cgroups, _, pod, evictor = world

    async def work() -> None:
        await evictor.evict(pod, grace_s=3600.0)
        await asyncio.sleep(10.0)
        await evictor.evict(pod, grace_s=5.0)
        await evictor.ended(pod.uid)

    virtual(work())
    assert cgroups.signals[0] == ("TERM", 0.0)
    assert 15.0 <= cgroups.signals[1][1] < 15.5


def test_an_ending_that_fails_is_forgotten_so_that_the_next_call_tries_again(
    world: tuple[Stubborn, LocalPods, Pod, LocalEvictor], virtual: Virtual, monkeypatch: pytest.MonkeyPatch
) -> None:
    cgroups, store, pod, evictor = world
    monkeypatch.setattr(local_evictor, "signal_group", lambda *_: 1 / 0)

    async def work() -> None:
        await evictor.evict(pod, grace_s=1.0)
        await evictor.ended(pod.uid)
        assert not present(store.get(pod.uid)).status.finished
        monkeypatch.setattr(local_evictor, "signal_group", cgroups.term)
        await evictor.evict(pod, grace_s=1.0)
        await evictor.ended(pod.uid)

    virtual(work())
    assert present(store.get(pod.uid)).status.finished
