"""The lease on disk names the floor of these very pods, and who would end it lived when it was renewed."""

from collections.abc import Mapping, Sequence
from typing import cast

import pytest
from qrm_world import TUTORIAL_NODE, Lease

from services.qrm.conditions import Conditions
from services.qrm.core.placement.arrangement import Arrangement, Node, arrange_floor
from services.qrm.core.writes.plan import Sets, WantedSets
from services.qrm.lease.renewal import LeaseRenewal
from services.qrm.ports import PodGroups
from shared.contracts.pod import Pod
from shared.core.cpus.cpuset import CpuSet
from shared.ports import Clock

FLOOR = arrange_floor(Node(TUTORIAL_NODE, {}), CpuSet())
ANOTHER_FLOOR = arrange_floor(Node(TUTORIAL_NODE, {}), CpuSet.parse("0-3"))
A, B = (Pod(uid=uid, name=uid) for uid in "ab")


class Groups:
    """What each pod's group gets: the shared pool of the floor."""

    named = 0

    def wanted(self, floor: Arrangement, pods: Sequence[Pod]) -> Mapping[str, WantedSets]:
        self.named += 1
        return {pod.uid: WantedSets(Sets(floor.pools["share"], CpuSet())) for pod in pods}


class StoppedClock:
    now_s = 5000.0

    def monotonic(self) -> float:
        return self.now_s


class FaultyLease(Lease):
    """A lease whose file, or whose watchdog, can fail."""

    full = away = False

    def renew(self, left_s: float, floor: Mapping[str, WantedSets]) -> None:
        if self.full:
            raise OSError("No space left")
        super().renew(left_s, floor)

    def ensure_watchdog(self) -> None:
        assert self.renewals, "a watchdog that finds no lease ends at once"
        if self.away:
            raise ProcessLookupError("nobody holds lease.lock")


class World:
    def __init__(self) -> None:
        self.lease, self.groups, self.clock, self.conditions = FaultyLease(), Groups(), StoppedClock(), Conditions()
        ports = cast("PodGroups", self.groups), cast("Clock", self.clock)
        self.renewal = LeaseRenewal(self.lease, *ports, self.conditions)

    @property
    def on_disk(self) -> dict[str, str]:
        return self.lease.renewals[-1][1]


@pytest.fixture
def world() -> World:
    return World()


def share(floor: Arrangement) -> str:
    return str(floor.pools["share"])


def test_the_lease_follows_the_pods_and_the_floor_and_names_them_once_while_they_stay(world: World) -> None:
    renew = world.renewal.renew
    assert renew(10.0, FLOOR, [A], mark=1)
    assert renew(10.0, FLOOR, [A], mark=1)
    assert (world.on_disk, world.groups.named) == ({"a": share(FLOOR)}, 1)
    assert renew(10.0, FLOOR, [A, B], mark=2)
    assert world.on_disk == dict.fromkeys("ab", share(FLOOR))
    assert renew(10.0, ANOTHER_FLOOR, [A, B], mark=2)
    assert world.on_disk == dict.fromkeys("ab", share(ANOTHER_FLOOR))
    assert world.groups.named == 3


def test_pods_of_which_nothing_tells_that_they_are_the_same_are_named_each_time(world: World) -> None:
    assert world.renewal.renew(10.0, FLOOR, [A], mark=None)
    assert world.renewal.renew(10.0, FLOOR, [B], mark=None)
    assert world.on_disk == {"b": share(FLOOR)}


@pytest.mark.parametrize("fault", ["full", "away"])
def test_a_lease_that_nobody_would_end_covers_nobody_new_and_was_last_watched_when_it_was(
    world: World, fault: str
) -> None:
    assert world.renewal.renew(10.0, FLOOR, [A], mark=1)
    setattr(world.lease, fault, True)
    for _ in range(3):
        world.clock.now_s += 1.0
        assert not world.renewal.renew(10.0, FLOOR, [A, B], mark=2)
    assert (world.renewal.covered, world.renewal.watched_at_s) == (1, 5000.0)
    assert [one.type for one in world.conditions.all()] == ["LeaseUnkept"]
    setattr(world.lease, fault, False)
    assert world.renewal.renew(10.0, FLOOR, [A, B], mark=2)
    assert (world.renewal.covered, world.renewal.watched_at_s) == (2, 5003.0)
    assert world.conditions.all() == ()


def test_a_lease_that_was_never_watched_counts_from_the_first_try(world: World) -> None:
    world.lease.full = True
    assert world.renewal.watched_at_s == float("inf")
    for _ in range(3):
        assert not world.renewal.renew(10.0, FLOOR, [A], mark=1)
        world.clock.now_s += 1.0
    assert (world.renewal.covered, world.renewal.watched_at_s) == (None, 5000.0)
