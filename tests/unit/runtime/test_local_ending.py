"""An eviction in virtual time: TERM at once, KILL at the deadline and not before, until nobody is left."""

import asyncio

import pytest
from pods_rig import record

from shared.adapters.clock import LoopClock
from shared.adapters.local import evictor as local_evictor
from shared.adapters.local.evictor import LocalEvictor
from shared.adapters.local.pods import LocalPods


class Stubborn:
    """A cgroup whose processes ignore TERM; each KILL gets one of them while the others fork no more."""

    def __init__(self, processes, clock):
        self.processes, self.clock, self.signals = processes, clock, []

    def pids(self, _group):
        return list(range(self.processes))

    def remove(self, _group):
        return not self.processes

    def term(self, _cgroups, _group, _number):
        self.signals.append(("TERM", self.clock.monotonic()))
        return self.processes

    def kill(self, _cgroups, _group):
        there = self.processes
        if there:
            self.signals.append(("KILL", self.clock.monotonic()))
            self.processes -= 1
        return there


@pytest.fixture
def world(tmp_path, monkeypatch):
    cgroups = Stubborn(3, LoopClock())
    monkeypatch.setattr(local_evictor, "signal_group", cgroups.term)
    monkeypatch.setattr(local_evictor, "kill_group", cgroups.kill)
    made, store = record("web"), LocalPods(tmp_path)
    store.add(made)
    return cgroups, store, made.pod, LocalEvictor(tmp_path, cgroups, cgroups.clock)


def test_term_at_once_kill_at_the_deadline_and_again_until_nobody_is_left(world, virtual):
    cgroups, store, pod, evictor = world

    async def work():
        await evictor.evict(pod, grace_s=30.0)
        await evictor.ended(pod.uid)

    virtual(work())
    names = [name for name, _ in cgroups.signals]
    (_, term_s), (_, first_kill_s), *_ = cgroups.signals
    assert names == ["TERM", "KILL", "KILL", "KILL"]
    assert (term_s, round(first_kill_s, 6)) == (0.0, 30.0)
    assert store.get(pod.uid).status.finished


def test_a_later_wish_for_less_grace_is_heeded_during_the_grace(world, virtual):
    cgroups, _, pod, evictor = world

    async def work():
        await evictor.evict(pod, grace_s=3600.0)
        await asyncio.sleep(10.0)
        await evictor.evict(pod, grace_s=5.0)
        await evictor.ended(pod.uid)

    virtual(work())
    assert cgroups.signals[0] == ("TERM", 0.0)
    assert 15.0 <= cgroups.signals[1][1] < 15.5


def test_an_ending_that_fails_is_forgotten_so_that_the_next_call_tries_again(world, virtual, monkeypatch):
    cgroups, store, pod, evictor = world
    monkeypatch.setattr(local_evictor, "signal_group", lambda *_: 1 / 0)

    async def work():
        await evictor.evict(pod, grace_s=1.0)
        await evictor.ended(pod.uid)
        assert not store.get(pod.uid).status.finished
        monkeypatch.setattr(local_evictor, "signal_group", cgroups.term)
        await evictor.evict(pod, grace_s=1.0)
        await evictor.ended(pod.uid)

    virtual(work())
    assert store.get(pod.uid).status.finished
