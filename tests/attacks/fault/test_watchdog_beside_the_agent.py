"""The lease's watchdog as the container beside the agent: a process of its own on real cgroups, ended in every way."""

import contextlib
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from services.qrm.adapters.kernel.writer import CgroupWriter
from services.qrm.adapters.lease import file as leases
from services.qrm.adapters.lease.client import LeaseClient
from services.qrm.core.writes.plan import Sets, WantedSets
from shared.adapters.host.cgroup import Cgroups
from shared.core.cgroups.knobs import Knob
from shared.core.cpus.cpuset import CpuSet

HOST = Path("/")
Until = Callable[[Callable[[], object]], Awaitable[None]]
_FIT = os.geteuid() == 0 and os.access("/sys/fs/cgroup/cpuset/cgroup.procs", os.W_OK) and (os.cpu_count() or 0) > 1
pytestmark = [pytest.mark.root, pytest.mark.skipif(not _FIT, reason="needs root, a writable v1 cpuset, two CPUs")]
LONG_S = 600.0


class Pod:
    """An agent's pod as far as the lease goes: state folder, groups, and the watchdog's container."""

    def __init__(self, folder: Path) -> None:
        self.state, self.said = folder / "state", folder / "then"
        self.state.mkdir()
        self.cgroups = Cgroups(HOST)
        self.top = f"sublet-test-{uuid.uuid4().hex[:8]}"
        self.batch = f"{self.top}/batch"
        CgroupWriter(self.cgroups, self.top).make([self.batch])
        self.agent = LeaseClient(self.state, HOST, self.top, resident=True)
        self.watchdogs: list[subprocess.Popen[bytes]] = []

    def start_watchdog(self) -> subprocess.Popen[bytes]:
        then = ["sh", "-c", f"echo $$ >>{self.said}"]
        words = [sys.executable, "-m", "services.qrm.keeper", str(self.state), "/", "--then", *then]
        self.watchdogs.append(subprocess.Popen(words, stderr=subprocess.DEVNULL))
        return self.watchdogs[-1]

    def renew(self, left_s: float) -> None:
        """As a living agent does."""
        cpus, mems = CpuSet.parse("0"), CpuSet.parse("0")
        floor = {self.batch: WantedSets(Sets(cpus, mems), 0)}
        self.agent.renew(left_s, floor)

    def widen(self) -> None:
        self.cgroups.write(self.batch, Knob.CPUS, "0-1")

    def cpus(self) -> object:
        return self.cgroups.read(self.batch, Knob.CPUS)

    def end(self) -> None:
        for watchdog in self.watchdogs:
            watchdog.kill()
            watchdog.wait()
        assert self.cgroups.remove(self.top)


@pytest.fixture
def pod(tmp_path: Path) -> Iterator[Pod]:
    made = Pod(tmp_path)
    yield made
    with contextlib.suppress(ProcessLookupError):
        made.end()


async def test_an_agent_that_is_gone_for_good_leaves_the_floor_when_its_lease_ends_and_the_watchdog_stays(
    pod: Pod, until: Until
) -> None:
    pod.widen()
    watchdog = pod.start_watchdog()
    await until(pod.agent.watchdog_alive)
    pod.renew(1.0)
    pod.agent.ensure_watchdog()
    assert pod.cpus() == "0-1"
    deadline_s = leases.boottime_s() + 1.0
    await until(lambda: pod.cpus() == "0")
    assert leases.boottime_s() >= deadline_s - 0.1
    await until(pod.agent.watchdog_fired)  # its mark follows the write
    pod.widen()  # the agent is back
    pod.renew(0.2)
    await until(lambda: pod.cpus() == "0")
    assert watchdog.poll() is None


async def test_at_the_end_of_the_pod_the_floor_comes_at_once_and_then_the_question_whether_it_is_for_good(
    pod: Pod, until: Until
) -> None:
    pod.widen()
    watchdog = pod.start_watchdog()
    await until(pod.agent.watchdog_alive)
    pod.renew(LONG_S)
    await pod.agent.stop()
    assert pod.agent.left_s() > 0, "an agent that ends leaves the lease to the watchdog"
    watchdog.send_signal(signal.SIGTERM)
    await until(lambda: watchdog.poll() is not None)
    assert (pod.cpus(), watchdog.returncode, pod.said.read_text()) == ("0", 0, f"{watchdog.pid}\n")


async def test_a_watchdog_that_is_killed_comes_back_to_the_same_lease_and_an_agent_without_one_says_so(
    pod: Pod, until: Until
) -> None:
    with pytest.raises(OSError, match="container leave does not run"):
        pod.agent.ensure_watchdog()
    pod.start_watchdog()
    await until(pod.agent.watchdog_alive)
    pod.watchdogs[0].kill()
    pod.watchdogs[0].wait()
    pod.widen()
    pod.renew(0.1)
    assert pod.cpus() == "0-1"
    pod.start_watchdog()
    await until(lambda: pod.cpus() == "0")


async def test_the_next_pods_watchdog_waits_for_the_last_ones(pod: Pod, until: Until) -> None:
    old = pod.start_watchdog()
    await until(pod.agent.watchdog_alive)
    new = pod.start_watchdog()
    lock = pod.state / leases.LOCK
    pod.renew(LONG_S)
    old.send_signal(signal.SIGTERM)
    await until(lambda: lock.read_text() == f"{new.pid}\n")
    assert (old.wait(), new.poll()) == (0, None)


@pytest.mark.parametrize("text", ["{", "[]", '{"schema": 99}', '{"schema": 1, "floor": 3}', "x" * (9 << 20)])
async def test_a_lease_that_cannot_be_read_does_not_make_the_last_good_one_longer(
    pod: Pod, until: Until, text: str
) -> None:
    pod.widen()
    pod.start_watchdog()
    await until(pod.agent.watchdog_alive)
    pod.renew(1.5)
    await until(lambda: True)
    file = pod.state / leases.FILE
    # The watchdog looks twice a second: once it has seen the good one, the file is spoilt.
    deadline_s = leases.boottime_s() + 0.7
    await until(lambda: leases.boottime_s() > deadline_s)
    file.write_text(text)
    await until(lambda: pod.cpus() == "0")


async def test_a_floor_that_names_a_group_outside_is_not_written_and_the_watchdog_lives(pod: Pod, until: Until) -> None:
    watchdog = pod.start_watchdog()
    await until(pod.agent.watchdog_alive)
    pod.widen()
    mems = CpuSet.parse("0")
    pod.agent.renew(0.0, {f"{pod.top}/../..": WantedSets(Sets(CpuSet.parse("0"), mems), 0)})
    pod.renew(0.1)
    await until(lambda: pod.cpus() == "0")
    assert watchdog.poll() is None
