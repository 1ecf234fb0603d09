"""One suite for every EvictionActuator: by UID, idempotent, honest about what it cannot see."""

import os
from typing import Any, cast

import pytest
from fixture_types import Until
from kube_api import Api, FakeKube
from pods_rig import HOST, ROOT_ONLY, own_top, record, runtime

from shared import ports
from shared.adapters.clock import SystemClock
from shared.adapters.host.cgroup import Cgroups
from shared.adapters.kube.evictor import KubeEvictor
from shared.adapters.local.evictor import LocalEvictor, SimEvictor
from shared.adapters.local.pods import LocalPods
from shared.contracts.pod import Pod
from shared.fakes.fake_evictor import FakeEvictor
from shared.ports import EvictionActuator


class Fake:
    """Pods in memory; time moves when the world is asked to move on."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.evictor = FakeEvictor(clock=cast("ports.Clock", self), lives_on_s=1.0)

    def monotonic(self) -> float:
        return self.now_s

    def run(self, name: str) -> Pod:
        pod = record(name).pod
        self.evictor.run(pod)
        return pod

    def move_on(self) -> None:
        self.now_s += 1.0

    async def close(self) -> None:
        return


class Sim:
    """Pods in the store that the simulator would run."""

    def __init__(self, state_dir: Any) -> None:
        self.pods, self.evictor = LocalPods(state_dir), SimEvictor(state_dir)

    def run(self, name: str) -> Pod:
        made = record(name)
        self.pods.add(made)
        self.pods.update_status(made.pod.uid, phase="Running")
        return made.pod

    def move_on(self) -> None:
        for stored in self.pods.stored():
            if stored.status.terminating:
                stored.folder.finish()

    async def close(self) -> None:
        return


class Cluster:
    """Pods of an API server."""

    def __init__(self) -> None:
        self.api = Api()
        self.evictor = KubeEvictor(FakeKube(self.api))

    def run(self, name: str) -> Pod:
        pod = record(name).pod
        self.api.run_pod(name, pod.uid)
        return pod

    def move_on(self) -> None:
        self.api.end_terminating()

    async def close(self) -> None:
        return


class Host:
    """Real processes in real cgroups."""

    def __init__(self, state_dir: Any, top: str) -> None:
        self.runtime = runtime(state_dir, top)
        self.evictor = LocalEvictor(state_dir, Cgroups(HOST), SystemClock(), top=top)

    def run(self, name: str) -> Pod:
        made = record(name, "sh", "-c", "trap '' TERM; while :; do sleep 0.05; done")
        self.runtime.start(made, env=os.environ)
        return made.pod

    def move_on(self) -> None:
        return

    async def close(self) -> None:
        await self.evictor.close()


@pytest.fixture(params=["fake", "sim", "cluster", pytest.param("host", marks=ROOT_ONLY)])
async def world(request: pytest.FixtureRequest, tmp_path: Any) -> Any:
    if request.param == "host":
        with own_top() as top:
            host = Host(tmp_path, top)
            yield host
            await host.close()
        return
    yield {"fake": Fake, "cluster": Cluster}[request.param]() if request.param != "sim" else Sim(tmp_path)


@pytest.fixture
def evictor(world: Any) -> EvictionActuator:
    found: EvictionActuator = world.evictor
    return found


async def test_a_pod_that_runs_is_running(world: Any, evictor: Any) -> None:
    assert await evictor.lookup(world.run("web")) == "running"


async def test_a_uid_that_never_was_is_gone(world: Any, evictor: Any) -> None:
    stranger = record("web").pod
    assert await evictor.lookup(stranger) == "gone"
    assert (await evictor.evict(stranger, grace_s=1)).outcome == "gone"
    assert (await evictor.evict(stranger, grace_s=1, dry_run=True)).outcome == "gone"


async def test_a_dry_run_says_what_would_happen_and_does_nothing(world: Any, evictor: Any) -> None:
    pod = world.run("web")
    assert (await evictor.evict(pod, grace_s=0, dry_run=True)).outcome == "accepted"
    world.move_on()
    assert await evictor.lookup(pod) == "running"


class CalledOff(Exception):
    """Something speaks against the eviction."""


async def test_what_the_last_check_calls_off_leaves_the_pod_alone(world: Any, evictor: Any) -> None:
    def objects() -> None:
        raise CalledOff

    pod = world.run("web")
    with pytest.raises(CalledOff):
        await evictor.evict(pod, grace_s=0, last_check=objects)
    world.move_on()
    assert await evictor.lookup(pod) == "running"


async def test_an_eviction_is_accepted_at_once_and_ends_with_the_pod_gone(
    world: Any, evictor: Any, until: Until
) -> None:
    pod = world.run("web")
    assert (await evictor.evict(pod, grace_s=0.1)).outcome == "accepted"
    assert await evictor.lookup(pod) in ("terminating", "gone")
    await _gone(world, evictor, pod)


async def test_asking_again_changes_nothing(world: Any, evictor: Any, until: Until) -> None:
    pod = world.run("web")
    for _ in range(3):
        assert (await evictor.evict(pod, grace_s=0.1)).outcome == "accepted"
    await _gone(world, evictor, pod)
    assert (await evictor.evict(pod, grace_s=0.1)).outcome == "gone"


async def test_only_the_uid_that_was_named_goes(world: Any, evictor: Any) -> None:
    victim, bystander = world.run("web"), world.run("web-2")
    impostor = victim.model_copy(update={"uid": record("x").pod.uid})
    assert (await evictor.evict(impostor, grace_s=0)).outcome == "gone"
    assert await evictor.lookup(victim) == "running"
    await evictor.evict(victim, grace_s=0)
    await _gone(world, evictor, victim)
    assert await evictor.lookup(bystander) == "running"


async def _gone(world: Any, evictor: Any, pod: Pod) -> None:
    clock = SystemClock()
    end = clock.monotonic() + 20
    while await evictor.lookup(pod) != "gone":
        assert clock.monotonic() < end
        world.move_on()
        await clock.sleep(0.005)
