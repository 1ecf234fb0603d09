"""LocalEvictor on the real kernel: the whole pod, only that pod, whoever has died meanwhile."""

import asyncio
import os
import shutil
import signal
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from fixture_types import Until
from pods_rig import HOST, PATIENCE_S, ROOT_ONLY, gone, own_top, record, runtime, start_foreground, watcher_pid
from present import present

from shared.adapters.clock import SystemClock
from shared.adapters.host.cgroup import Cgroups
from shared.adapters.local.evictor import LocalEvictor
from shared.adapters.local.stored_pod import PodStatus, StoredPod
from shared.core.cgroups.layout import pod_group

pytestmark = ROOT_ONLY
STUBBORN = "trap '' TERM; echo ready; while :; do sleep 0.05; done"


@pytest.fixture
def top() -> Iterator[str]:
    with own_top() as name:
        yield name


class Rig:
    """A runtime, an evictor, and what is in the cgroups."""

    def __init__(self, state_dir: Path, top: str) -> None:
        self.state_dir, self.top = state_dir, top
        self.runtime, self.cgroups = runtime(state_dir, top), Cgroups(HOST)
        self.evictor = self.new_evictor()

    def new_evictor(self) -> LocalEvictor:
        return LocalEvictor(self.state_dir, self.cgroups, SystemClock(), top=self.top)

    def start(self, name: str, *command: str) -> StoredPod:
        pod = record(name, *command)
        self.runtime.start(pod, env=os.environ)
        return present(self.runtime.pods.get(pod.pod.uid))

    def pids(self, stored: StoredPod) -> list[int]:
        return self.cgroups.pids(pod_group(stored.record.pod, self.top))

    def left(self, stored: StoredPod) -> bool:
        return self.cgroups.exists(pod_group(stored.record.pod, self.top))

    def status(self, stored: StoredPod) -> PodStatus:
        return present(self.runtime.pods.get(stored.record.pod.uid)).status


@pytest.fixture
async def rig(tmp_path: Path, top: str) -> AsyncIterator[Rig]:
    rig = Rig(tmp_path, top)
    yield rig
    await rig.evictor.close()


async def test_a_pod_that_heeds_term_is_not_killed(rig: Rig, until: Until) -> None:
    stored = rig.start("heeds", "sh", "-c", "trap 'exit 7' TERM; echo ready; while :; do sleep 0.05; done")
    await until(lambda: stored.folder.log("main").read_text() == "ready\n")
    result = await rig.evictor.evict(stored.pod, grace_s=PATIENCE_S, why="memory is short")
    assert result.outcome == "accepted"
    await until(lambda: rig.status(stored).finished)
    status = rig.status(stored)
    assert (status.phase, status.reason, status.message) == ("Failed", "Evicted", "memory is short")
    assert status.containers["main"].exit_code == 7
    assert not rig.left(stored)
    assert await rig.evictor.lookup(stored.pod) == "gone"


async def test_after_the_grace_every_process_is_killed_those_in_other_sessions_too(rig: Rig, until: Until) -> None:
    stored = rig.start("stubborn", "sh", "-c", f'setsid sh -c "{STUBBORN}" & {STUBBORN}')
    await until(lambda: stored.folder.log("main").read_text().count("ready") == 2)
    everybody = rig.pids(stored)
    await rig.evictor.evict(stored.pod, grace_s=0.1)
    assert await rig.evictor.lookup(stored.pod) == "terminating"
    await rig.evictor.ended(stored.pod.uid)
    assert all(gone(pid) for pid in everybody)
    assert rig.status(stored).containers["main"].exit_code == 137
    assert not rig.left(stored)


@pytest.mark.parametrize("graces_s", [(3600, 0), (0, 3600)], ids=["shorter", "longer"])
async def test_asked_again_the_earlier_deadline_counts(rig: Rig, until: Until, graces_s: tuple[float, float]) -> None:
    stored = rig.start("stubborn", "sh", "-c", STUBBORN)
    await until(lambda: stored.folder.log("main").read_text() == "ready\n")
    answers = [await rig.evictor.evict(stored.pod, grace_s=grace_s) for grace_s in graces_s]
    assert [answer.outcome for answer in answers] == ["accepted", "accepted"]
    await until(lambda: rig.status(stored).finished)


@pytest.mark.parametrize("watched", [True, False], ids=["watched", "watcher dead"])
async def test_a_pod_that_forks_without_end_is_emptied(rig: Rig, until: Until, watched: bool) -> None:
    stored = rig.start("forks", "sh", "-c", "trap '' TERM; while :; do (sleep 1; sleep 1) & sleep 0.001; done")
    if not watched:
        os.kill(watcher_pid(stored.folder.path), signal.SIGKILL)
        await until(lambda: not stored.folder.watched())
    await until(lambda: len(rig.pids(stored)) > 5)
    await rig.evictor.evict(stored.pod, grace_s=0)
    await until(lambda: rig.status(stored).finished)
    assert rig.pids(stored) == []


async def test_it_works_when_the_watcher_is_dead(rig: Rig, until: Until) -> None:
    stored = rig.start("orphan", "sh", "-c", f"sleep 300 & {STUBBORN}")
    await until(lambda: stored.folder.log("main").read_text() == "ready\n")
    os.kill(watcher_pid(stored.folder.path), signal.SIGKILL)
    await until(lambda: not stored.folder.watched())
    everybody = rig.pids(stored)
    assert await rig.evictor.lookup(stored.pod) == "running"
    await rig.evictor.evict(stored.pod, grace_s=0.05)
    await rig.evictor.ended(stored.pod.uid)
    assert all(gone(pid) for pid in everybody)
    assert not rig.left(stored)
    assert (rig.status(stored).phase, rig.status(stored).reason) == ("Failed", "Evicted")


async def test_after_the_evictors_death_the_next_one_finishes(rig: Rig, until: Until) -> None:
    stored = rig.start("stubborn", "sh", "-c", STUBBORN)
    await until(lambda: stored.folder.log("main").read_text() == "ready\n")
    await rig.evictor.evict(stored.pod, grace_s=3600)
    await rig.evictor.close()
    successor = rig.new_evictor()
    assert await successor.lookup(stored.pod) == "terminating"
    assert (await successor.evict(stored.pod, grace_s=0)).outcome == "accepted"
    await successor.ended(stored.pod.uid)
    assert rig.status(stored).finished


async def test_a_successor_of_the_name_is_not_touched(rig: Rig, until: Until) -> None:
    old = rig.start("web", "true")
    await until(lambda: rig.status(old).finished)
    new = rig.start("web", "sleep", "300")
    assert (await rig.evictor.evict(old.pod, grace_s=0)).outcome == "gone"
    assert await rig.evictor.lookup(new.pod) == "running"
    assert rig.pids(new)
    assert not rig.status(new).terminating


async def test_a_dry_run_touches_nothing(rig: Rig) -> None:
    stored = rig.start("calm")
    assert (await rig.evictor.evict(stored.pod, grace_s=0, dry_run=True)).outcome == "accepted"
    assert await rig.evictor.lookup(stored.pod) == "running"
    assert not rig.status(stored).terminating


async def test_processes_without_a_record_are_not_gone(rig: Rig, until: Until) -> None:
    stored = rig.start("lost")
    shutil.rmtree(stored.folder.path)
    assert await rig.evictor.lookup(stored.pod) == "running"
    await rig.evictor.evict(stored.pod, grace_s=PATIENCE_S)
    await rig.evictor.ended(stored.pod.uid)
    assert (rig.pids(stored), rig.left(stored)) == ([], False)


async def test_a_pod_whose_record_cannot_be_read_is_not_touched(rig: Rig) -> None:
    stored = rig.start("torn")
    (stored.folder.path / "pod.json").write_text("{")
    assert await rig.evictor.lookup(stored.pod) == "unknown"
    result = await rig.evictor.evict(stored.pod, grace_s=0)
    assert (result.outcome, "default/torn" in result.detail) == ("failed", True)
    assert rig.pids(stored)


async def test_whoever_waits_in_the_foreground_is_told_why(rig: Rig, until: Until, top: str, tmp_path: Path) -> None:
    pod = record("encode", "sleep", "300")
    process = start_foreground(tmp_path, top, pod)
    await until(
        lambda: (
            rig.runtime.pods.get(pod.pod.uid) and present(rig.runtime.pods.get(pod.pod.uid)).status.phase == "Running"
        )
    )
    await rig.evictor.evict(pod.pod, grace_s=PATIENCE_S, why="memory is short")
    said = (await asyncio.to_thread(process.communicate))[1]
    assert process.returncode == 143
    assert said == "sublet: pod default/encode was evicted (memory is short); see: sublet explain pod/encode\n"
    await rig.evictor.ended(pod.pod.uid)
    assert rig.runtime.pods.get(pod.pod.uid) is None


async def test_delete_takes_the_pod_out_of_the_store(rig: Rig, until: Until) -> None:
    stored = rig.start("stubborn", "sh", "-c", STUBBORN)
    await until(lambda: stored.folder.log("main").read_text() == "ready\n")
    await rig.runtime.end(stored, 0.05)
    assert (rig.pids(stored), rig.left(stored), rig.runtime.pods.stored()) == ([], False, [])


async def test_a_stranger_in_another_cgroup_is_never_signalled(rig: Rig, until: Until) -> None:
    one, two = rig.start("one", "sh", "-c", STUBBORN), rig.start("two", "sh", "-c", STUBBORN)
    await until(lambda: two.folder.log("main").read_text() == "ready\n")
    await rig.evictor.evict(one.pod, grace_s=0)
    await until(lambda: rig.status(one).finished)
    assert two.status.containers["main"].pid in rig.pids(two)
