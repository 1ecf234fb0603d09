"""The simulated host starts and ends what the pod store says, and touches nothing of the real machine."""

import asyncio
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from shared.adapters.clock import LoopClock
from shared.adapters.local.evictor import SimEvictor
from shared.adapters.local.pods import LocalPods
from shared.contracts.pod import Pod
from shared.core.cgroups.knobs import Knob
from shared.core.cgroups.layout import container_group, pod_group
from shared.core.pods.manifest import read_pod
from shared.errors import Conflict, Refused
from sublet.load.demand import STOP_AFTER
from sublet.sim.host import SimHost
from sublet.sim.live.loop import PERIOD_S, live
from sublet.sim.live.story import Story
from sublet.sim.machine import SimMachine
from sublet.sim.scenario import Exec, Step, read_scenario

QOS = "katalyst.kubewharf.io/qos_level"


def manifest(
    name: str = "web", qos: str = "shared_cores", command: str = "stress -c 1", **limits: str
) -> dict[str, Any]:
    container = {"name": "stress", "command": command.split(), "resources": {"limits": limits, "requests": limits}}
    meta = {"name": name, "annotations": {QOS: qos}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"containers": [container]}}


@pytest.fixture(params=[1, 2], ids=["cgroup-v1", "cgroup-v2"])
def machine(request: pytest.FixtureRequest) -> SimMachine:
    return SimMachine(sockets=1, cores_per_numa=2, memory="8Gi", cgroup_version=request.param)


@pytest.fixture
def host(machine: SimMachine, tmp_path: Path) -> SimHost:
    host = SimHost.create(tmp_path / "host", machine, tmp_path / "state")
    host.step(0.0)
    return host


def tasks(host: SimHost, pod: Pod) -> int:
    return len(host.kernel.groups.cgroups.pids(pod_group(pod)))


def phase(host: SimHost, pod: Pod) -> str:
    stored = host.pods.get(pod.uid)
    return "gone" if stored is None else stored.status.phase


def test_an_applied_pod_starts_at_the_next_step_under_its_limits(host: SimHost) -> None:
    pod = host.apply_pod(manifest(cpu="2", memory="1Gi"))
    assert (phase(host, pod), tasks(host, pod)) == ("Pending", 0)
    host.step(1.0)
    group = container_group(pod, "stress")
    assert (phase(host, pod), tasks(host, pod)) == ("Running", 2)
    assert host.kernel.groups.limit_cores(group) == 2.0
    assert host.kernel.groups.memory_limit_bytes(group) == 1 << 30
    assert host.running() == ["default/web"]


def test_reclaimed_amounts_are_no_limits(host: SimHost) -> None:
    amounts = {"resource.katalyst.kubewharf.io/reclaimed_millicpu": "2k"}
    pod = host.apply_pod(manifest("batch", "reclaimed_cores", **amounts))
    host.step(1.0)
    assert pod.cpu_request_millis == 2000
    assert host.kernel.groups.limit_cores(container_group(pod, "stress")) is None


def test_exec_adds_threads_to_a_running_pod(host: SimHost) -> None:
    pod = host.apply_pod(manifest())
    host.step(1.0)
    host.perform(Step(at_s=1, exec=Exec(pod="web", command=("stress", "-c", "2"))))
    assert tasks(host, pod) == 4


@pytest.mark.parametrize(
    ("request_", "word"),
    [
        (Exec(pod="nobody", command=("true",)), "pod default/nobody does not run; running: default/web"),
        (Exec(pod="web", container="other", command=("true",)), "no container 'other'; it has: stress"),
    ],
    ids=["no such pod", "no such container"],
)
def test_exec_into_what_is_not_there_is_refused(host: SimHost, request_: Exec, word: str) -> None:
    host.apply_pod(manifest())
    host.step(1.0)
    with pytest.raises(Refused, match=word):
        host.exec(request_)


def test_a_deleted_pod_ends_after_its_grace_and_leaves_the_store(host: SimHost) -> None:
    pod = host.apply_pod(manifest())
    host.step(1.0)
    host.delete_pod("default/web")
    host.step(2.0)
    host.step(31.9)
    assert phase(host, pod) == "Running"
    host.step(32.0)
    assert (phase(host, pod), tasks(host, pod), host.running()) == ("gone", 0, [])
    assert not host.kernel.groups.cgroups.exists(pod_group(pod))


async def test_an_evicted_pod_ends_as_failed_after_the_grace_it_was_given(host: SimHost, tmp_path: Path) -> None:
    pod = host.apply_pod(manifest())
    host.step(1.0)
    evictor = SimEvictor(tmp_path / "state")
    assert (await evictor.evict(pod, grace_s=5)).outcome == "accepted"
    host.step(2.0)
    assert await evictor.lookup(pod) == "terminating"
    host.step(7.0)
    assert (phase(host, pod), await evictor.lookup(pod)) == ("Failed", "gone")


def test_a_pod_may_end_by_itself_before_its_grace_is_over(host: SimHost) -> None:
    document = manifest()
    document["metadata"]["annotations"][STOP_AFTER] = "3"
    pod = host.apply_pod(document)
    host.step(1.0)
    host.delete_pod("web")
    host.step(2.0)
    host.step(5.0)
    assert phase(host, pod) == "gone"


def test_a_pod_whose_own_end_cannot_be_read_is_refused(host: SimHost) -> None:
    document = manifest()
    document["metadata"]["annotations"][STOP_AFTER] = "soon"
    with pytest.raises(Refused, match="'soon': want whole seconds"):
        host.apply_pod(document)


def test_deleting_a_pod_that_has_ended_takes_it_out_of_the_store(host: SimHost) -> None:
    pod = host.apply_pod(manifest())
    host.step(1.0)
    host.pods.mark_terminating(pod.uid, 0, "Evicted")
    host.step(2.0)
    assert phase(host, pod) == "Failed"
    host.delete_pod("web")
    assert phase(host, pod) == "gone"


def test_a_pod_above_its_memory_limit_fails(host: SimHost) -> None:
    pod = host.apply_pod(manifest(cpu="1", memory="1Gi"))
    host.step(1.0)
    host.exec(Exec(pod="web", command=("stress", "--vm", "1", "--vm-bytes", "2G", "--vm-hang", "0")))
    host.step(2.0)
    stored = host.pods.get(pod.uid)
    assert stored is not None
    assert (stored.status.phase, stored.status.reason) == ("Failed", "OOMKilled")
    assert host.running() == []


def test_a_pod_that_vanished_from_the_store_is_stopped(host: SimHost) -> None:
    pod = host.apply_pod(manifest())
    host.step(1.0)
    host.pods.remove(pod.uid)
    host.step(2.0)
    assert (tasks(host, pod), host.running()) == (0, [])


def test_a_second_pod_of_a_name_and_an_unreadable_command_are_refused(host: SimHost) -> None:
    host.apply_pod(manifest())
    with pytest.raises(Conflict, match="exists"):
        host.apply_pod(manifest())
    with pytest.raises(Refused, match="stress -c 'x'"):
        host.apply_pod(manifest("other", command="stress -c x"))
    assert [pod.key for pod in host.pods.pods()] == ["default/web"]


def test_a_pod_of_another_process_that_cannot_start_fails_alone(host: SimHost, tmp_path: Path) -> None:
    record = read_pod(manifest("odd", command="stress -c x"), "0dd").record
    LocalPods(tmp_path / "state").add(record)
    good = host.apply_pod(manifest())
    host.step(1.0)
    assert (phase(host, record.pod), phase(host, good)) == ("Failed", "Running")


def test_the_same_story_gives_the_same_uids(machine: SimMachine, tmp_path: Path) -> None:
    uids = []
    for run in ("one", "two"):
        host = SimHost.create(tmp_path / run, machine, tmp_path / f"{run}-state")
        uids.append([host.apply_pod(manifest(name)).uid for name in ("web", "batch")])
    assert uids[0] == uids[1]
    assert len(set(uids[0])) == 2


def test_a_restarted_host_takes_its_pods_up_again_and_keeps_what_was_written(
    host: SimHost, machine: SimMachine, tmp_path: Path
) -> None:
    pod = host.apply_pod(manifest())
    host.step(1.0)
    host.kernel.groups.cgroups.write("sublet/reclaimed_cores", Knob.CPUS, "0-1")
    again = SimHost.create(tmp_path / "host", machine, tmp_path / "state")
    assert tasks(again, pod) == 0
    again.step(50.0)
    assert (tasks(again, pod), phase(again, pod)) == (2, "Running")
    assert again.kernel.groups.cgroups.read("sublet/reclaimed_cores", Knob.CPUS) == "0-1"
    other = again.apply_pod(manifest("batch"))
    assert other.uid != pod.uid


def test_each_uid_space_gives_uids_of_its_own_and_always_the_same(machine: SimMachine, tmp_path: Path) -> None:
    def uids(folder: str, space: uuid.UUID) -> list[str]:
        host = SimHost.create(tmp_path / folder / "host", machine, tmp_path / folder / "state", space)
        return [host.apply_pod(manifest(name)).uid for name in ("a", "b")]

    one, other = uuid.UUID(int=1), uuid.UUID(int=2)
    assert uids("first", one) == uids("again", one)
    assert len({*uids("third", one), *uids("other", other)}) == 4


@pytest.mark.parametrize(("again_at_s", "begun_at_s"), [(None, [5.0]), (20.0, [5.0, 25.0, 45.0])])
def test_a_story_in_real_time_is_played_once_or_as_often_as_it_says(
    host: SimHost, virtual: Callable[[Any], Any], again_at_s: float | None, begun_at_s: list[float]
) -> None:
    pod = manifest()
    pod["metadata"]["annotations"][STOP_AFTER] = "1"
    steps = [{"at_s": 5, "apply": [pod]}, {"at_s": 10, "delete": "web"}]
    story = read_scenario({"name": "story", "again_at_s": again_at_s, "steps": steps}, source="test")
    begun: list[float] = []

    async def play() -> None:
        clock = LoopClock()
        start_s = clock.monotonic()
        living = asyncio.create_task(live(host, clock, host.pods.path.parent / "sim.json", Story(story)))
        before: list[str] = []
        while clock.monotonic() - start_s < 60:
            if host.running() > before:
                begun.append(float(int(clock.monotonic() - start_s)))
            before = host.running()
            await clock.sleep(PERIOD_S)
        living.cancel()

    virtual(play())
    assert begun == begun_at_s
